"""How odd rows of a table are beside a crowd of rows that the model draws itself."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from harmonium.data.column import Column
from harmonium.evaluation.synthetic import draw_rows
from harmonium.models import RBM
from harmonium.models.observed import counted_log_z, observed_energy

N_DRAWS = 1000
"""How many rows of the model say what is usual."""

N_MEMORIES, N_PATTERNS = 64, 128
"""How many memories there are, and of how many rows each."""

N_WIDTHS = 2
"""The widths of a memory are ½ and ⅛ of the usual distance between two rows."""

RIDGE = 0.01
"""What is added to the variance of each column, in its own units, before a covariance is inverted."""

_LOW = 0.1  # the share of the crowd below which nobody tells how far surprises reach down
_ROWS, _FAR = 4096, 1e6  # standard deviations: what is farther away is not odder, and its square is a number


class Crowd:
    """Rows drawn from a model of a table (`draw_rows`), beside which others are more or less odd.

    A *memory* of the rows m_1 … m_n is the RBM of Gaussian visible units of width h and one hidden category whose
    weights they are, a modern Hopfield network (Ramsauer et al. 2021); its free energy at x is
    `-log Σ_k e^{-|x - m_k|²/2h²}`: with a small h the distance to the nearest, with a large one to the middle of all.
    Few rows a memory and many memories, averaged, as isolation forests do (Liu et al. 2008): odd rows, if the model has
    learned some, are too few in each to be company for each other. Beside them stand the distance in the covariance of
    the crowd (Mahalanobis), which sees correlations that are broken, and the density of the model.

    Distances are those of cells in the units of the table, in standard deviations; of ordered levels, their numbers;
    of other levels χ², divided such that every column has the same spread. Unknown cells are left out of them.
    """

    def __init__(self, rbm: RBM, columns: Sequence[Column], *, generator: torch.Generator | None = None) -> None:
        self.rbm, self.columns = rbm, [column for column in columns if column.width]
        drawn = draw_rows(rbm, self.columns, N_DRAWS + N_MEMORIES * N_PATTERNS, generator=generator)
        self.usual = drawn[:N_DRAWS]
        blocks = [_places(column, x, clamp=True) for column, x in zip(self.columns, self._blocks(drawn), strict=True)]
        self.means, self.scales = zip(*map(_moments, self.columns, blocks), strict=True)
        self.widths = torch.tensor([block.shape[1] for block in blocks])
        self.memories = self._standardized(blocks)[N_DRAWS:]
        self.middle, self.covariance = self.memories.mean(0), torch.atleast_2d(self.memories.mT.cov())

    @torch.no_grad()
    def oddness(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the anomaly of encoded rows, and their p-values: the share of the crowd that is at least as odd.

        Four surprises: the free energies of memories of two widths, the squared Mahalanobis distance, and
        `-log p(x_o)`. Each is counted from its median over rows of the crowd with the same cells known, in units of how
        far the lower half of them reaches, `(median - lowest tenth)`: odd rows that the model has learned lie in
        the upper half. The anomaly is the mean of the two largest: a row is as odd as two of the four agree on.
        """
        x = x.to(self.rbm.weight)
        patterns, index = self.known(x).unique(dim=0, return_inverse=True)
        anomaly, p_value = torch.zeros(len(x), dtype=torch.float64), torch.ones(len(x), dtype=torch.float64)
        for i, known in enumerate(patterns):
            if not bool(known.any()):
                continue
            mine = (index == i).nonzero().squeeze(1)
            others = self._surprises(self.usual, known)
            median, low = (others.quantile(share, 1, keepdim=True) for share in (0.5, _LOW))
            reach = (median - low).clamp_min(1e-6)
            usual = _agreed((others - median) / reach).sort().values
            anomaly[mine] = _agreed((self._surprises(x[mine], known) - median) / reach)
            above = len(usual) - torch.searchsorted(usual, anomaly[mine])
            p_value[mine] = (1 + above).double() / (1 + len(usual))
        return anomaly, p_value

    def known(self, x: Tensor) -> Tensor:
        """Return which cells of which columns are known, `(n, n_columns)`."""
        return torch.stack([~block.isnan().any(1) for block in self._blocks(x)], 1)

    def _blocks(self, x: Tensor) -> tuple[Tensor, ...]:
        return x.split([column.width for column in self.columns], 1)

    def _standardized(self, blocks: Sequence[Tensor]) -> Tensor:
        parts = zip(blocks, self.means, self.scales, strict=True)
        return torch.cat([(block - mean) / scale for block, mean, scale in parts], 1).clamp(-_FAR, _FAR)

    def _surprises(self, x: Tensor, known: Tensor) -> Tensor:
        """Return the four surprises of rows by the cells that are known, `(4, n)`."""
        holes = ~known.repeat_interleave(torch.tensor([column.width for column in self.columns]))
        blocks = [_places(column, b) for column, b in zip(self.columns, self._blocks(x), strict=True)]
        kept = known.repeat_interleave(self.widths)
        places, memories, n_known = self._standardized(blocks)[:, kept], self.memories[:, kept], int(known.sum())
        free = torch.cat([free_energies(part, memories, n_known) for part in places.split(_ROWS)], 1)
        spread = self.covariance[kept][:, kept] + RIDGE * torch.eye(int(kept.sum())).to(places)
        away = places - self.middle[kept]
        distance = (away * torch.linalg.solve(spread, away.mT).mT).sum(1)
        return torch.cat([free, distance[None], -observed_log_p(self.rbm, x.masked_fill(holes, math.nan))[None]])


def _agreed(surprises: Tensor) -> Tensor:
    """Return the mean of the two largest surprises of each row."""
    return surprises.topk(2, 0).values.mean(0)


def free_energies(x: Tensor, memories: Tensor, n_columns: int) -> Tensor:
    """Return `-log Σ_k e^{-|x - m_k|²/2h²}`, averaged over memories, for each width h, `(N_WIDTHS, n)`.

    Two rows are `√(2 n_columns)` apart, as a rule: half of it is the first width h, a fourth of that the second. The
    sum over k is that of `u_k^{16^i}` with `u = e^{-|x - m|²/2h²}` of the first, relative to the nearest.
    """
    total = x.new_zeros(N_WIDTHS, len(x))
    norms = x.square().sum(1, keepdim=True)
    for memory in memories.split(N_PATTERNS):
        distance = (norms + memory.square().sum(1) - 2 * x @ memory.mT).clamp_min(0) / n_columns
        nearest = distance.amin(1, keepdim=True)
        power = (nearest - distance).exp()
        for i in range(N_WIDTHS):
            total[i] += 16**i * nearest.squeeze(1) - power.sum(1).log()
            power = power.pow(16)
    return total / (len(memories) / N_PATTERNS)


def observed_log_p(rbm: RBM, x: Tensor) -> Tensor:
    """Return `log p(x_o)` of rows, their unknown values (NaN) summed out, a part of them at a time."""
    x, log_z = x.to(rbm.weight), counted_log_z(rbm)
    return torch.cat([-observed_energy(rbm, rows) - log_z for rows in x.split(_ROWS)]).double()


def _places(column: Column, block: Tensor, *, clamp: bool = False) -> Tensor:
    """Return where the cells of a column lie, `(n, 1)` on a line, or `(n, n_levels)`; drawn ones within its range."""
    if column.is_numeric:
        return column.inverse(block) if clamp else column.unrounded(block)
    if column.type == "ordinal":
        numbers = [x if isinstance(x, int | float) else i for i, x in enumerate(column.levels)]
        return block @ torch.tensor(numbers, dtype=block.dtype)[:, None]
    return block


def _moments(column: Column, block: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean of places, and the scale that makes the spread of their column 1."""
    if column.type == "categorical":
        share = (block.sum(0) + 1) / (len(block) + column.width)  # a level never drawn is not infinitely far
        return share, (share * max(1, column.width - 1)).sqrt()
    return block.mean(0), block.std(0).clamp_min(1e-9)
