"""Three layers at once."""

from __future__ import annotations

import math
from typing import Self

import torch
from torch import Tensor

from harmonium.couplings.base import Coupling, Shapes, as_rows, as_shape, flatten_layer, small_normal
from harmonium.types import gradient, weighted, without_gradient

_FIELDS = ("ijk,...j,...k->...i", "ijk,...i,...k->...j", "ijk,...i,...j->...k")


class ThirdOrder(Coupling):
    """The trilinear form `Φ(x, y, z) = Σ_ijk W_ijk x_i y_j z_k`: a gate for each pair (section 6.5, Tomczak).

    >>> ThirdOrder(2, 3, 4).weight.shape
    torch.Size([2, 3, 4])
    """

    def __init__(
        self,
        first: int | tuple[int, ...],
        second: int | tuple[int, ...],
        third: int | tuple[int, ...],
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.first, self.second, self.third = as_shape(first), as_shape(second), as_shape(third)
        self.weight = small_normal(*map(math.prod, self.shapes), generator=generator)

    @classmethod
    def examples(cls) -> list[tuple[Self, Shapes]]:
        """Return small ones with the shapes of their layers."""
        return [(cls(2, 3, 4), ((2,), (3,), (4,))), (cls((2, 1), 3, (2, 2)), ((2, 1), (3,), (2, 2)))]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the three layers."""
        return self.first, self.second, self.third

    def field(self, to: int, *others: Tensor) -> Tensor:
        """Return the sum over the two other layers."""
        shapes = [shape for i, shape in enumerate(self.shapes) if i != to]
        flat = [flatten_layer(other, shape) for other, shape in zip(others, shapes, strict=True)]
        return torch.einsum(_FIELDS[to], self.weight, *flat).unflatten(-1, self.shapes[to])

    @without_gradient
    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        """Add `Σ weight · x ⊗ y ⊗ z`."""
        x, y, z = (as_rows(layer, shape) for layer, shape in zip(xs, self.shapes, strict=True))
        if isinstance(weight, Tensor) and weight.ndim:
            z, weight = weighted(z, weight.reshape(-1)), 1.0
        gradient(self.weight).add_(torch.einsum("ni,nj,nk->ijk", x, y, z), alpha=float(weight))
