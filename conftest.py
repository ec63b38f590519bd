"""Doctests see PyTorch and every public name of Harmonium, as a reader of the docstring does."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import harmonium


@pytest.fixture(autouse=True)
def _names_for_doctests(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace["torch"] = torch
    doctest_namespace.update({name: getattr(harmonium, name) for name in harmonium.__all__})
