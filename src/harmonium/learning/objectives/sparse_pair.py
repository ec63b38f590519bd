"""The inner loop of learning where most values of the visible layer are zero, as in counts of words."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium import workers
from harmonium.learning.objectives.dense_pair import DensePair, Phase
from harmonium.types import mean_difference

FEWEST_COLUMNS = 4096
"""Below it the dense products take less time than to look for zeros."""

DENSEST = 1 / 32
"""The share of nonzeros up to which products over them alone are faster."""


class SparsePair(DensePair):
    """A dense pair whose products with the visible layer run over its nonzeros alone.

    Of the five products of an update four are with v⁺ or v⁻, `s(v)ᵀW` and `s(v)s(h)ᵀ`: these cost what the nonzeros
    cost. Where data are sparse, so are the draws of a model that has learned how often its units are on. The fifth,
    `W s(h)`, is the law of all visible units and stays dense: an exact draw looks at each of them.
    """

    @staticmethod
    def suits(pair: DensePair, v: Tensor) -> bool:
        """Return whether a batch has so many columns, and so few nonzeros, that it pays."""
        return (
            v.ndim == 2
            and v.shape[1] >= FEWEST_COLUMNS
            and v.device.type == "cpu"
            and not pair.units_learn
            and _is_sparse(v)
        )

    def above(self, v: Tensor) -> tuple[Phase, Tensor]:
        """Return the phase with v given and h at its means, and the field on h, `c + s(v)ᵀW`."""
        if not _is_sparse(v):
            return super().above(v)
        s_v = self.visible.statistic(v).to_sparse()
        field = torch.mm(s_v, self.weight.detach()).view(-1, *self.hidden.shape).add_(self.hidden_bias)
        return Phase(v, s_v, self.hidden.mean(field), workers.whole(v.shape[0])), field

    def add_contrast(self, positive: Phase, negative: Phase) -> None:
        """Make the gradients of the mean of `E(v⁺, h⁺)` less that of `E(v⁻, h⁻)`.

        `∂W = <s(v)s(h)ᵀ>⁻ - <s(v)s(h)ᵀ>⁺`, and so for the biases.
        """
        h, h_model = (self.hidden.statistic(phase.h).flatten(1) for phase in (positive, negative))
        v, v_model = (self.visible.statistic(phase.v) for phase in (positive, negative))
        self.weight.grad = torch.zeros_like(self.weight)
        self.weight.grad.addmm_(negative.s_v.t(), h_model, alpha=1 / negative.n)
        self.weight.grad.addmm_(positive.s_v.t(), h, alpha=-1 / positive.n)
        self.visible_bias.grad = mean_difference(v_model, v, negative.n, positive.n)
        self.hidden_bias.grad = mean_difference(h_model, h, negative.n, positive.n).view(self.hidden.shape)


def _is_sparse(v: Tensor) -> bool:
    return int(v.count_nonzero()) <= DENSEST * v.numel()
