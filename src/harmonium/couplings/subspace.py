"""Gates over groups of units."""

from __future__ import annotations

import math
from typing import Self

import torch
from torch import Tensor

from harmonium.couplings.base import Coupling, Shapes, as_rows, as_shape, flatten_layer, small_normal
from harmonium.products import add_product, product
from harmonium.types import weighted, without_gradient


class Subspace(Coupling):
    """The trilinear form `Φ(x, h, S) = Σ_ijk W_ijk x_i h_j s_jk` (eq. 6.44 of Tomczak's chapter).

    Gate j opens the way to its own `width` units s_j1, s_j2, … and to no others; given x the groups are independent, so
    that a machine sums gates and groups out in closed form. `weight` is one row for each entry of the lower layer, one
    column for each unit of a group.

    >>> Subspace(784, 100, 5).shapes
    ((784,), (100,), (100, 5))
    """

    def __init__(
        self, lower: int | tuple[int, ...], n_gates: int, width: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.lower = as_shape(lower)
        self.n_gates, self.width = n_gates, width
        self.weight = small_normal(math.prod(self.lower), n_gates * width, generator=generator)

    @classmethod
    def examples(cls) -> list[tuple[Self, Shapes]]:
        """Return small ones with the shapes of their layers."""
        return [(cls(4, 3, 2), ((4,), (3,), (3, 2))), (cls((2, 2), 3, 2), ((2, 2), (3,), (3, 2)))]

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The shapes of the lower layer, the gates and their groups."""
        return self.lower, (self.n_gates,), (self.n_gates, self.width)

    def gates(self, gate: int, other: int) -> bool:
        """Return that gates meet their own groups only."""
        return (gate, other) == (1, 2)

    def field(self, to: int, *others: Tensor) -> Tensor:
        """Return `Σ_jk W_ijk h_j s_jk` on x, `Σ_ik W_ijk x_i s_jk` on h, `h_j Σ_i W_ijk x_i` on S."""
        if to == 0:
            h, s = others
            down = product((h.unsqueeze(-1) * s).flatten(-2), self.weight.t())
            return down if len(self.lower) == 1 else down.unflatten(-1, self.lower)
        x, other = others
        up = product(flatten_layer(x, self.lower), self.weight).unflatten(-1, (self.n_gates, self.width))
        return (up * other).sum(-1) if to == 1 else up * other.unsqueeze(-1)

    @without_gradient
    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        """Add `Σ weight · x (h∘S)ᵀ`."""
        x = as_rows(xs[0], self.lower)
        gated = as_rows(xs[1].unsqueeze(-1) * xs[2], (self.n_gates, self.width))
        if isinstance(weight, Tensor) and weight.ndim:
            gated, weight = weighted(gated, weight.reshape(-1)), 1.0
        add_product(self.weight, x.t(), gated, float(weight))
