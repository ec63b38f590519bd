"""The code blocks of the README and of CONTRIBUTING do what they say."""

from __future__ import annotations

import dataclasses
import re
import textwrap
import typing
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

import conftest
import harmonium
from harmonium import data, draws, runs, testing, types
from harmonium.learning.objectives import base
from harmonium.runs import panels

ROOT = Path(__file__).resolve().parent.parent


def blocks(name: str) -> list[tuple[str, str]]:
    """Return the Python blocks of a document, each with the heading that it stands under."""
    found, heading = [], ""
    text = (ROOT / name).read_text(encoding="utf-8")
    for match in re.finditer(r"^## ([^\n]+)$|^( *)```python\n(.*?)^\2```$", text, re.MULTILINE | re.DOTALL):
        heading = match[1] or heading
        if match[3]:
            found.append((heading, textwrap.dedent(match[3])))
    return found


def names() -> dict[str, Any]:
    """Return what the blocks of CONTRIBUTING may use without importing it: what the files beside the new one import."""
    known: dict[str, Any] = {"torch": torch, "Tensor": Tensor, "nn": nn, "logsigmoid": logsigmoid, "Field": Field}
    known |= {"dataclass": dataclasses.dataclass, "Mapping": Mapping, "Self": typing.Self, "ClassVar": typing.ClassVar}
    rooms: tuple[ModuleType, ...] = (*conftest.ROOMS, data, runs, panels, base, draws, types, testing)
    for room in rooms:
        known |= {n: value for n, value in vars(room).items() if n[0] != "_" and not isinstance(value, ModuleType)}
    return known


@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
@pytest.mark.parametrize(("heading", "code"), blocks("README.md"))
def test_readme(heading: str, code: str) -> None:
    namespace: dict[str, Any] = {}
    torch.manual_seed(0)  # a reader gives no generator
    exec(compile(code, f"README.md, {heading}", "exec"), namespace)  # noqa: S102  (our own documents)
    if "accuracy" in namespace:  # ten classes: chance is 0.1
        assert namespace["accuracy"] > 0.8 and namespace["sevens"].shape == (16, 64)
    else:
        assert namespace["v"].shape == (64, 64)


CONTRIBUTING = blocks("CONTRIBUTING.md")


@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
@pytest.mark.parametrize(("heading", "code"), CONTRIBUTING, ids=[f"{i} {h}" for i, (h, _) in enumerate(CONTRIBUTING)])
def test_contributing(heading: str, code: str) -> None:
    namespace = names()
    torch.manual_seed(0)
    exec(compile(code, f"CONTRIBUTING.md, {heading}", "exec"), namespace)  # noqa: S102  (our own documents)
    if "bound" in namespace and isinstance(namespace["bound"], harmonium.Estimate):
        assert namespace["bound"].value > -10 and "bound" in namespace["bound"].kind  # fair coins have -11.09
    if isinstance(namespace.get("following"), Tensor):
        assert namespace["nats"].value > -2 and namespace["following"].mean(0).argmax() == 1


def test_each_family_has_its_recipe() -> None:
    headings = {heading.lower() for heading, _ in CONTRIBUTING}
    for family in ("unit", "coupling", "sampler", "objective", "model", "kind of model"):
        assert any(family in heading for heading in headings), family
