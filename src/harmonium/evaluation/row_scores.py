"""How probable each row of a table is, and which columns make it improbable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.data.column import Column
from harmonium.data.table import log_slopes
from harmonium.evaluation.crowd import Crowd, observed_log_p
from harmonium.models import RBM
from harmonium.types import Estimate


@dataclass(frozen=True, eq=False)
class RowScores:
    """The scores of n rows.

    `log_likelihood` are nats of the observed values in the units of the table. `anomaly` is how odd a row is beside
    rows of the model (`Crowd.oddness`), `p_value` the share of the model's own rows that are at least as odd.
    `surprise`, `(n, n_columns)`, is `-log p(x_j | x_rest)` of each known cell less its mean over rows of the model, in
    nats: what each column adds to the oddness of a row; 0 where a cell is missing.
    """

    log_likelihood: Tensor
    anomaly: Tensor
    p_value: Tensor
    surprise: Tensor
    columns: tuple[str, ...]

    def because(self, row: int, n: int = 3) -> list[tuple[str, float]]:
        """Return the columns that explain a row, the most surprising first: those above 1 nat, `n` at most."""
        ordered = self.surprise[row].argsort(descending=True)[:n].tolist()
        return [(self.columns[j], float(self.surprise[row, j])) for j in ordered if self.surprise[row, j] > 1.0]


@torch.no_grad()
def observed_log_likelihood(rbm: RBM, x: Tensor) -> Estimate:
    """Return `log p(x_o)` of each row, its unknown values (NaN) summed out exactly, in nats of the encoded values."""
    value = observed_log_p(rbm, x)
    return Estimate(value, 0.0, value, value, "exact", at_least=value, at_most=value)


@torch.no_grad()
def score_rows(
    rbm: RBM, x: Tensor, columns: Sequence[Column], *, generator: torch.Generator | None = None
) -> RowScores:
    """Score encoded rows of a table."""
    crowd, rows = Crowd(rbm, columns, generator=generator), x.to(rbm.weight)
    anomaly, p_value = crowd.oddness(rows)
    log_p = observed_log_likelihood(rbm, rows).value
    expected = _surprises(rbm, crowd.usual, crowd.columns).mean(0)
    surprise = (_surprises(rbm, rows, crowd.columns) - expected).where(crowd.known(rows), 0.0)
    names = tuple(column.name for column in crowd.columns)
    return RowScores(log_p + log_slopes(rows, columns).sum(1), anomaly, p_value, surprise, names)


def _surprises(rbm: RBM, x: Tensor, columns: Sequence[Column]) -> Tensor:
    """Return `-log p(x_j | x_rest) = log p(x_rest) - log p(x)` of each column, `(n, n_columns)`."""
    log_p, found, start = observed_log_likelihood(rbm, x).value, [], 0
    for column in columns:
        rest = x.clone()
        rest[:, start : start + column.width] = math.nan
        found.append(observed_log_likelihood(rbm, rest).value - log_p)
        start += column.width
    return torch.stack(found, 1)
