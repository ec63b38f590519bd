"""The units of one layer with each other."""

from __future__ import annotations

import math
from typing import Self

import torch
from torch import Tensor, nn

from harmonium.couplings.base import Coupling, Shapes, as_rows, as_shape, flatten_layer
from harmonium.memory import check_parameter
from harmonium.types import gradient, weighted, without_gradient


class Symmetric(Coupling):
    """The form `Φ(x, y) = ½ xᵀWy` with W symmetric and no self-coupling; with one layer at both ends `½ xᵀWx`.

    This is the energy of Hopfield networks and Boltzmann machines, `p(x) ∝ exp(½ xᵀWx)` (lecture notes); eq. 6.32 of
    Tomczak's chapter writes it without the ½. Only the symmetric part of `weight` off the diagonal counts.

    >>> Symmetric(3).matrix().shape
    torch.Size([3, 3])
    """

    ties_itself = True

    def __init__(self, shape: int | tuple[int, ...]) -> None:
        super().__init__()
        self.shape = as_shape(shape)
        n = math.prod(self.shape)
        check_parameter((n, n))
        self.weight = nn.Parameter(torch.zeros(n, n))

    @classmethod
    def examples(cls) -> list[tuple[Self, Shapes]]:
        """Return small ones with the shapes of their layers."""
        return [(cls(4), ((4,), (4,))), (cls((2, 2)), ((2, 2), (2, 2)))]

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shape of the layer, twice."""
        return self.shape, self.shape

    def matrix(self) -> Tensor:
        """Return W: the symmetric part of `weight`, with a zero diagonal."""
        return _hollow((self.weight + self.weight.t()) / 2)

    def field(self, to: int, *others: Tensor) -> Tensor:
        """Return `½ W y`; both ends together put `W x` on a layer tied to itself."""
        return (flatten_layer(others[0], self.shape) @ (self.matrix() / 2)).unflatten(-1, self.shape)

    @without_gradient
    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        """Add `Σ weight · ½ x yᵀ`, made symmetric and without its diagonal."""
        x, y = (as_rows(end, self.shape) for end in xs)
        if isinstance(weight, Tensor) and weight.ndim:
            y, weight = weighted(y, weight.reshape(-1)), 1.0
        outer = x.t() @ y
        gradient(self.weight).add_(_hollow(outer + outer.t()), alpha=float(weight) / 4)


def _hollow(matrix: Tensor) -> Tensor:
    return matrix - torch.diag(matrix.diagonal())
