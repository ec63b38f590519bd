"""The inner loop of learning with weights of 16 bits, multiplied as bytes."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from harmonium import workers
from harmonium.learning.objectives.dense_pair import DensePair, Phase
from harmonium.planes import Planes, as_bytes, can_multiply_bytes
from harmonium.products import product
from harmonium.types import mean_difference


class RoundedPair(DensePair):
    """A dense pair whose weights are those of `Rounded` for an update: each to the nearest of a grid of 16 bits.

    The fields of both phases are of the rounded weights; the weights that are learned stay floats, and the gradient at
    the rounded ones is theirs. All five products of an update are made of bytes where the states are whole numbers of
    8 bits: those of the gradient as one, `[s(v⁻); s(v⁺)]ᵀ [s(h⁻)/n⁻; -s(h⁺)/n⁺]`, whose right side, with h at its
    means, is rounded to 16 bits, too. On processors without instructions for bytes, and for other states, the rounded
    weights are multiplied as floats.
    """

    @staticmethod
    def suits(pair: DensePair) -> bool:
        """Return whether a matrix in single precision on the CPU, and biases, are all that is learned."""
        weight = pair.weight
        return (
            pair.kind is DensePair.kind
            and weight.dtype == torch.float32
            and weight.device.type == "cpu"
            and not pair.units_learn
        )

    @cached_property
    def planes(self) -> Planes:
        """The weights of this update as bytes."""
        return Planes.of(self.weight.detach())

    @cached_property
    def rounded(self) -> Tensor:
        """The rounded weights as floats."""
        return self.planes.weight()

    def above(self, v: Tensor) -> tuple[Phase, Tensor]:
        """Return the phase with v given and h at its means, and the field on h, `c + s(v)ᵀW`."""
        s_v = self.visible.statistic(v)
        field = self._product(s_v.flatten(1), transposed=False).view(-1, *self.hidden.shape).add_(self.hidden_bias)
        return Phase(v, s_v, self.hidden.mean(field), workers.whole(v.shape[0])), field

    def below(self, h: Tensor) -> Tensor:
        """Return the field on the visible layer, `b + W s(h)`."""
        s_h = self.hidden.statistic(h).flatten(1)
        return self._product(s_h, transposed=True).view(-1, *self.visible.shape).add_(self.visible_bias)

    def _product(self, x: Tensor, *, transposed: bool) -> Tensor:
        made = self.planes.product(x, transposed=transposed) if can_multiply_bytes(x) else None
        return product(x, self.rounded.t() if transposed else self.rounded) if made is None else made

    def add_contrast(self, positive: Phase, negative: Phase) -> None:
        """Make the gradients of the mean of `E(v⁺, h⁺)` less that of `E(v⁻, h⁻)`, as `DensePair` does."""
        v, v_model = (phase.s_v.flatten(1) for phase in (positive, negative))
        h, h_model = (self.hidden.statistic(phase.h).flatten(1) for phase in (positive, negative))
        both = torch.cat([v_model, v])
        rows = as_bytes(both) if can_multiply_bytes(both.t()) else None
        if rows is None:
            super().add_contrast(positive, negative)
            return
        shares = torch.cat([h_model / negative.n, h / -positive.n])
        self.weight.grad = Planes.of(shares).product_of_bytes(rows.t())
        self.visible_bias.grad = mean_difference(v_model, v, negative.n, positive.n).view(self.visible.shape)
        self.hidden_bias.grad = mean_difference(h_model, h, negative.n, positive.n).view(self.hidden.shape)
