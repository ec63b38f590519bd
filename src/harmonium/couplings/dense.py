"""Every unit of one layer with every unit of another."""

from __future__ import annotations

import math
from typing import Self

import torch
from torch import Tensor

from harmonium.couplings.base import Coupling, Shapes, as_rows, as_shape, flatten_layer, small_normal
from harmonium.products import add_product, product
from harmonium.types import weighted, without_gradient


class Dense(Coupling):
    """The bilinear form `Φ(v, h) = Σ_ij v_i W_ij h_j` (eq. 1 of Hwang et al. 2020, eq. 6.33 of Tomczak's chapter).

    `weight` is visible × hidden, one row and one column for each entry of the flattened layers.

    >>> Dense(784, 500).weight.shape
    torch.Size([784, 500])
    """

    def __init__(
        self, left: int | tuple[int, ...], right: int | tuple[int, ...], *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.left, self.right = as_shape(left), as_shape(right)
        self.weight = small_normal(math.prod(self.left), math.prod(self.right), generator=generator)

    @classmethod
    def examples(cls) -> list[tuple[Self, Shapes]]:
        """Return small ones with the shapes of their layers."""
        return [(cls(4, 3), ((4,), (3,))), (cls((2, 2), (1, 3)), ((2, 2), (1, 3)))]

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of the two layers."""
        return self.left, self.right

    def fans(self) -> tuple[int, int]:
        """Return the sizes of the two layers."""
        return self.weight.shape[0], self.weight.shape[1]

    def field(self, to: int, *others: Tensor) -> Tensor:
        """Return `W h` on the left layer or `vᵀW` on the right one."""
        from_, onto = (self.right, self.left) if to == 0 else (self.left, self.right)
        weight = self.weight.t() if to == 0 else self.weight
        field = product(flatten_layer(others[0], from_), weight)
        return field if len(onto) == 1 else field.unflatten(-1, onto)

    def biased_field(self, bias: Tensor, to: int, *others: Tensor) -> Tensor:
        """Return `b + W h` or `b + vᵀW`, the bias added by the product where layers are flat."""
        if torch.is_grad_enabled() or not len(self.left) == len(self.right) == bias.ndim == 1:
            return super().biased_field(bias, to, *others)
        return product(others[0], self.weight.t() if to == 0 else self.weight, bias)

    @without_gradient
    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        """Add `Σ weight · v hᵀ`."""
        v, h = as_rows(xs[0], self.left), as_rows(xs[1], self.right)
        if isinstance(weight, Tensor) and weight.ndim:
            h, weight = weighted(h, weight.reshape(-1)), 1.0
        add_product(self.weight, v.t(), h, float(weight))
