"""Doctests see PyTorch and every public name of the rooms that users reach into, as a reader of the docstring does."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch

import harmonium
from harmonium import couplings, inference, laws, learning, models, networks, partition, samplers, units
from harmonium.learning import monitors, objectives, starts, transforms

ROOMS: tuple[ModuleType, ...] = (
    units,
    couplings,
    models,
    networks,
    laws,
    samplers,
    inference,
    partition,
    learning,
    objectives,
    transforms,
    monitors,
    starts,
    harmonium,
)


@pytest.fixture(autouse=True)
def _names_for_doctests(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace["torch"] = torch
    for room in ROOMS:
        for name in getattr(room, "__all__", ()):
            getattr(room, name)  # those of `harmonium` are imported when they are asked for
        names = (name for name, value in vars(room).items() if name[0] != "_" and not isinstance(value, ModuleType))
        doctest_namespace.update({name: getattr(room, name) for name in names})
