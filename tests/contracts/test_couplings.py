"""Every coupling under the contract, and couplings that are wrong on purpose, which must fail it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

import harmonium.couplings
from harmonium.couplings import Bias, Conv2d, Coupling, Dense, Symmetric
from harmonium.couplings.base import Shapes
from harmonium.testing import ALL_COUPLINGS, ContractError, check_coupling
from harmonium.types import gradient


@pytest.mark.parametrize(("make", "shapes"), ALL_COUPLINGS, ids=lambda value: repr(value()) if callable(value) else "")
def test_coupling(make: Callable[[], Coupling], shapes: Shapes, generator: torch.Generator) -> None:
    check_coupling(make(), shapes, generator=generator)


def test_every_file_is_exported_and_listed() -> None:
    folder = Path(harmonium.couplings.__file__).parent
    files = {path.stem.replace("_", "") for path in folder.glob("*.py") if path.stem not in ("__init__", "base")}
    assert {type(make()).__name__.lower() for make, _ in ALL_COUPLINGS} == files


def test_shapes_of_a_convolution_must_be_given() -> None:
    with pytest.raises(ValueError, match="`shapes` must name 2 layers"):
        check_coupling(Conv2d(1, 1, kernel=2))


# --- negative controls ------------------------------------------------------------------------------------------------
class WrongField(Dense):
    def field(self, to: int, *others: Tensor) -> Tensor:
        return super().field(to, *others) * (1 + 1e-8 * to)


class WrongGradient(Dense):
    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        super().accumulate_grad(weight, *xs)
        gradient(self.weight).mul_(1 + 1e-8)


class Overwrites(Dense):
    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        self.weight.grad = None
        super().accumulate_grad(weight, *xs)


class IgnoresWeights(Dense):
    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        super().accumulate_grad(1.0 if isinstance(weight, Tensor) else weight, *xs)


class Forgets(Dense):
    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        return


class Affine(Bias):
    def forward(self, *xs: Tensor) -> Tensor:
        return super().forward(*xs) + 1.0


class OneSided(Symmetric):
    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        x, y = (end.reshape(-1, 4) for end in xs)
        scale = weight.reshape(-1, 1) if isinstance(weight, Tensor) else weight
        gradient(self.weight).add_(x.t() @ (y * scale) / 2)


class Graph(Dense):
    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        self.weight.grad = torch.zeros_like(self.weight) + 0 * self.weight


WRONG = [
    (WrongField(4, 3), "the field on layer 1 against"),
    (WrongGradient(4, 3), "accumulate_grad of weight against autograd"),
    (Overwrites(4, 3), "accumulate_grad of weight against autograd"),
    (IgnoresWeights(4, 3), "accumulate_grad of weight against autograd"),
    (Forgets(4, 3), "there is no gradient"),
    (Affine(4), "Φ\\(2x - y/2\\) against"),
    (OneSided(4), "accumulate_grad of weight against autograd"),
    (Graph(4, 3), "carries a graph"),
]


@pytest.mark.parametrize(("coupling", "text"), WRONG, ids=lambda value: type(value).__name__)
def test_wrong_coupling_fails(coupling: Coupling, text: str) -> None:
    with pytest.raises(ContractError, match=text):
        check_coupling(coupling)
