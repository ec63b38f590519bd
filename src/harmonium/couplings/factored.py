"""Three layers at once, through factors."""

from __future__ import annotations

import math
from typing import Self

import torch
from torch import Tensor, nn

from harmonium.couplings.base import Coupling, Shapes, as_rows, as_shape, flatten_layer, small_normal
from harmonium.products import add_product, product
from harmonium.types import weighted, without_gradient


class Factored(Coupling):
    """The trilinear form `Φ(x, y, z) = Σ_f (x·U_f)(y·V_f)(z·W_f)` (eq. 6 of Memisevic and Hinton 2010).

    `ThirdOrder` with a tensor of rank `n_factors`: it grows with the sum of the layers, not with their product. Each
    filter pair U_f, V_f is a product that the units of z add up.

    >>> Factored(169, 169, 100, n_factors=200).shapes
    ((169,), (169,), (100,))
    """

    def __init__(
        self,
        first: int | tuple[int, ...],
        second: int | tuple[int, ...],
        third: int | tuple[int, ...],
        n_factors: int,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(n_factors, int) or n_factors < 1:
            raise ValueError(f"`n_factors` must be a whole number, at least 1. Got {n_factors!r}.")
        self.first, self.second, self.third = as_shape(first), as_shape(second), as_shape(third)
        self.n_factors = n_factors
        sizes = [math.prod(shape) for shape in self.shapes]
        # Products of three small numbers would hardly act: the factors start at 0.1, not at 0.01.
        self.first_filters, self.second_filters, self.third_filters = (
            small_normal(size, n_factors, generator=generator, scale=0.1) for size in sizes
        )

    @classmethod
    def examples(cls) -> list[tuple[Self, Shapes]]:
        """Return small ones with the shapes of their layers."""
        return [(cls(2, 3, 4, 5), ((2,), (3,), (4,))), (cls((2, 1), 3, (2, 2), 3), ((2, 1), (3,), (2, 2)))]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the three layers."""
        return self.first, self.second, self.third

    @property
    def filters(self) -> tuple[nn.Parameter, nn.Parameter, nn.Parameter]:
        """U, V and W, one row for each entry of a layer, one column for each factor."""
        return self.first_filters, self.second_filters, self.third_filters

    def factors(self, layer: int, x: Tensor) -> Tensor:
        """Return `x·U_f` of a layer for each factor f."""
        return product(flatten_layer(x, self.shapes[layer]), self.filters[layer])

    def field(self, to: int, *others: Tensor) -> Tensor:
        """Return `Σ_f U_f (y·V_f)(z·W_f)` on x, and so on: the other two layers meet in the factors."""
        first, second = (i for i in range(3) if i != to)
        met = self.factors(first, others[0]) * self.factors(second, others[1])
        return product(met, self.filters[to].t()).unflatten(-1, self.shapes[to])

    @without_gradient
    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        """Add `Σ weight · x ⊗ (yV ∘ zW)` to U, and so on."""
        rows = [as_rows(x, shape) for x, shape in zip(xs, self.shapes, strict=True)]
        seen = [product(row, filters) for row, filters in zip(rows, self.filters, strict=True)]
        per_row = isinstance(weight, Tensor) and weight.ndim > 0
        for i, filters in enumerate(self.filters):
            j, k = (other for other in range(3) if other != i)
            met = seen[j] * seen[k]
            if per_row:
                met = weighted(met, weight.reshape(-1))  # type: ignore[union-attr]
            add_product(filters, rows[i].t(), met, 1.0 if per_row else float(weight))
