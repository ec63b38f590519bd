"""Weights of 16 bits, multiplied as bytes."""

from __future__ import annotations

import math
from typing import Self

import torch
from torch import Tensor

from harmonium.couplings.base import Coupling, Shapes, as_shape, flatten_layer
from harmonium.couplings.dense import Dense
from harmonium.planes import INTEGERS, Planes, can_multiply_bytes
from harmonium.products import product


class Rounded(Coupling):
    """The form of `Dense`, `Φ(v, h) = Σ_ij v_i W_ij h_j`, with fixed weights on a grid, `W = δ (256 a + b)`.

    a and b are whole numbers of 8 bits and δ is a power of two. Layers of whole numbers, such as 0 and 1, then meet the
    weights in two products of bytes, `vᵀW = δ (256 vᵀa + vᵀb)`, which is exact but for the last rounding and takes half
    of the time of floats on processors that have instructions for it. On others, and for other values (means), the
    same weights are multiplied as floats. So its law is that of the rounded weights everywhere.

    >>> Rounded.of(Dense(784, 500)).weight.shape
    torch.Size([784, 500])
    """

    weight: Tensor

    def __init__(self, left: int | tuple[int, ...], right: int | tuple[int, ...]) -> None:
        super().__init__()
        self.left, self.right = as_shape(left), as_shape(right)
        self.register_buffer("weight", torch.zeros(math.prod(self.left), math.prod(self.right)))
        self._made: tuple[Tensor, int, Planes] | None = None

    @classmethod
    def of(cls, dense: Dense) -> Self:
        """Return the coupling with the weights of another, rounded to the nearest of the grid."""
        rounded = cls(dense.left, dense.right)
        rounded.weight.copy_(Planes.of(dense.weight.detach()).weight())
        return rounded

    @classmethod
    def examples(cls) -> list[tuple[Self, Shapes]]:
        """Return small ones with the shapes of their layers."""
        made = Dense(4, 3, generator=torch.Generator().manual_seed(0))
        return [(cls.of(made), ((4,), (3,)))]

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of the two layers."""
        return self.left, self.right

    @property
    def planes(self) -> Planes:
        """The weights as bytes, made when they are first asked for and after they were loaded."""
        made, weight = self._made, self.weight
        if made is None or made[0] is not weight or made[1] != weight._version:
            made = self._made = weight, weight._version, Planes.of(weight)
        return made[2]

    @property
    def multiplies_bytes(self) -> bool:
        """Whether this processor is fast at products of bytes, so that they are used."""
        return INTEGERS

    def fans(self) -> tuple[int, int]:
        """Return the sizes of the two layers."""
        return self.weight.shape[0], self.weight.shape[1]

    def field(self, to: int, *others: Tensor) -> Tensor:
        """Return `W h` on the left layer or `vᵀW` on the right one."""
        from_, onto = (self.right, self.left) if to == 0 else (self.left, self.right)
        x = flatten_layer(others[0], from_)
        field = self.planes.product(x, transposed=to == 0) if can_multiply_bytes(x) else None
        if field is None:
            field = product(x, self.weight.t() if to == 0 else self.weight)
        return field if len(onto) == 1 else field.unflatten(-1, onto)

    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        """Do nothing: its weights are fixed."""
