"""How probable each row of a table is, and which columns make it improbable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.data.column import Column
from harmonium.data.table import log_slopes
from harmonium.models import RBM
from harmonium.models.observed import counted_log_z, draw_observed, observed_energy
from harmonium.types import Estimate

N_DRAWS = 1000
"""How many rows of the model the scores are compared with."""

_ROWS = 4096


@dataclass(frozen=True, eq=False)
class RowScores:
    """The scores of n rows.

    `log_likelihood` are nats of the observed values in the units of the table. `anomaly` is the larger of two
    surprises, `-log p(x_o)` of the row and `-Σ_j log p(x_j)` of its cells one by one, each in standard deviations from
    its mean over rows of the model with the same cells known: the first sees cells that do not go together, the second
    is not misled where odd rows were among those learned from. `p_value` is the share of the model's own rows that are
    at least as odd. `surprise`, `(n, n_columns)`, is `-log p(x_j | x_rest)` of each known cell less its mean over rows
    of the model, in nats: what each column adds to the oddness of a row; 0 where a cell is missing.
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
    value = _log_p(rbm, x.to(rbm.weight))
    return Estimate(value, 0.0, value, value, "exact", at_least=value, at_most=value)


@torch.no_grad()
def score_rows(
    rbm: RBM, x: Tensor, columns: Sequence[Column], *, generator: torch.Generator | None = None
) -> RowScores:
    """Score encoded rows of a table."""
    kept = [column for column in columns if column.width]
    rows = x.to(rbm.weight)
    samples = draw_observed(rbm, rows.new_full((N_DRAWS, rows.shape[1]), math.nan), generator=generator)
    log_p, known = _log_p(rbm, rows), _known(rows, kept)
    anomaly, p_value = _oddness(rbm, rows, log_p, samples, kept)
    expected = _surprises(rbm, samples, _log_p(rbm, samples), kept).mean(0)
    surprise = (_surprises(rbm, rows, log_p, kept) - expected).where(known, 0.0)
    names = tuple(column.name for column in kept)
    return RowScores(log_p + log_slopes(rows, columns).sum(1), anomaly, p_value, surprise, names)


@torch.no_grad()
def anomaly_scores(
    rbm: RBM, x: Tensor, columns: Sequence[Column], *, generator: torch.Generator | None = None
) -> Tensor:
    """Return the `anomaly` of encoded rows alone, as `score_rows` has it."""
    kept = [column for column in columns if column.width]
    rows = x.to(rbm.weight)
    samples = draw_observed(rbm, rows.new_full((N_DRAWS, rows.shape[1]), math.nan), generator=generator)
    return _oddness(rbm, rows, _log_p(rbm, rows), samples, kept)[0]


def _log_p(rbm: RBM, x: Tensor) -> Tensor:
    log_z = counted_log_z(rbm)
    return torch.cat([-observed_energy(rbm, rows) - log_z for rows in x.split(_ROWS)]).double()


def _known(x: Tensor, columns: Sequence[Column]) -> Tensor:
    """Return which cells of which columns are known, `(n, n_columns)`."""
    return torch.stack([~block.isnan().any(1) for block in x.split([column.width for column in columns], 1)], 1)


def _surprises(rbm: RBM, x: Tensor, log_p: Tensor, columns: Sequence[Column]) -> Tensor:
    """Return `-log p(x_j | x_rest) = log p(x_rest) - log p(x)` of each column, `(n, n_columns)`."""
    found, start = [], 0
    for column in columns:
        rest = x.clone()
        rest[:, start : start + column.width] = math.nan
        found.append(_log_p(rbm, rest) - log_p)
        start += column.width
    return torch.stack(found, 1)


def _marginals(rbm: RBM, x: Tensor, columns: Sequence[Column]) -> Tensor:
    """Return `-log p(x_j)` of each cell alone, `(n, n_columns)`, 0 where it is missing."""
    found, start = [], 0
    for column in columns:
        alone = torch.full_like(x, math.nan)
        alone[:, start : start + column.width] = x[:, start : start + column.width]
        found.append(-_log_p(rbm, alone))
        start += column.width
    return torch.stack(found, 1).where(_known(x, columns), 0.0)


def _oddness(rbm: RBM, x: Tensor, log_p: Tensor, samples: Tensor, columns: Sequence[Column]) -> tuple[Tensor, Tensor]:
    """Return the anomaly of each row and its p-value, against samples with the same cells known."""
    cells, of_samples = _marginals(rbm, x, columns), _marginals(rbm, samples, columns)
    patterns, index = _known(x, columns).unique(dim=0, return_inverse=True)
    holes = (~patterns).repeat_interleave(torch.tensor([column.width for column in columns]), 1)
    anomaly, p_value = torch.zeros_like(log_p), torch.ones_like(log_p)
    for i, known in enumerate(patterns):
        if not bool(known.any()):
            continue
        mine = index == i
        others = torch.stack([-_log_p(rbm, samples.masked_fill(holes[i], math.nan)), (of_samples * known).sum(1)])
        ours = torch.stack([-log_p[mine], cells[mine].sum(1)])
        mean, std = others.mean(1, keepdim=True), others.std(1, keepdim=True).clamp_min(1e-6)
        usual = ((others - mean) / std).amax(0).sort().values
        anomaly[mine] = ((ours - mean) / std).amax(0)
        above = len(usual) - torch.searchsorted(usual, anomaly[mine])
        p_value[mine] = (1 + above).double() / (1 + len(usual))
    return anomaly, p_value
