"""Synthetic rows of a table: the model says how columns go together, the data how each is distributed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from harmonium.data.column import KNOTS, Column
from harmonium.models import RBM
from harmonium.models.observed import draw_observed, hidden_configurations, log_weights
from harmonium.units import Mixed, MultivariateGaussian

_ROWS = 4096


@torch.no_grad()
def draw_rows(rbm: RBM, columns: Sequence[Column], n: int, *, generator: torch.Generator | None = None) -> Tensor:
    """Return `n` encoded rows, drawn exactly, whose numbers have the distribution of their column.

    A joint law is its copula and its margins (Sklar 1959). A value y of the model, drawn from its margin F, becomes
    `Q(F(y))` with Q the quantiles of the data (`Column.quantiles`): order and ties between columns are the
    model's; tails, spikes and gaps are the data's. Columns without quantiles stay as they are drawn.
    """
    empty = rbm.weight.new_full((n, sum(column.width for column in columns)), math.nan)
    rows = torch.cat([draw_observed(rbm, part, generator=generator) for part in empty.split(_ROWS)])
    share, means, stds = margins(rbm)
    for j, column in enumerate(column for column in columns if column.is_numeric):
        if column.quantiles:
            y = rows[:, j].double()
            below = torch.special.ndtr((y[:, None] - means[:, j]) / stds[j]) @ share
            rows[:, j] = column.forward(quantile(column, torch.special.ndtri(below))).to(rows)
    return rows


def quantile(column: Column, z: Tensor) -> Tensor:
    """Return the values of a column at the shares `Φ(z)`, on straight lines between its knots."""
    knots, values = (torch.tensor(x, dtype=z.dtype) for x in (KNOTS, column.quantiles))
    z = z.clamp(KNOTS[0], KNOTS[-1])
    after = torch.searchsorted(knots, z).clamp(1, len(knots) - 1)
    part = (z - knots[after - 1]) / (knots[after] - knots[after - 1])
    return values[after - 1].lerp(values[after], part)


def margins(rbm: RBM) -> tuple[Tensor, Tensor, Tensor]:
    """Return the laws of the numbers one by one: shares of the components, their means, and standard deviations."""
    visible = rbm.visible
    if not (isinstance(visible, Mixed) and isinstance(visible.parts[0], MultivariateGaussian)):
        return rbm.weight.new_zeros(1), rbm.weight.new_zeros(1, 0), rbm.weight.new_zeros(0)
    h = hidden_configurations(rbm)
    field = rbm.field("visible", {"hidden": h})
    share = (log_weights(rbm, h) + visible.total(visible.log_partition(field))).softmax(0)
    d = visible.parts[0].size
    return share, visible.mean(field)[:, :d], visible.variance(field)[0, :d].sqrt()
