"""Fill in what is missing of the rows of a table, with its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.data.column import Column, Value
from harmonium.data.copies import agreed
from harmonium.data.csv_file import Table
from harmonium.data.table import decode
from harmonium.models import RBM
from harmonium.models.observed import draw_observed


@dataclass(frozen=True)
class Filled:
    """One cell that was filled in: its value, and how sure it is.

    Of a number the mean of its draws with their standard deviation and the range of the middle nine tenths; of a level
    the most frequent one (of ordered levels the median) with its probability.
    """

    row: int
    column: str
    value: Value
    std: float | None = None
    low: Value | None = None
    high: Value | None = None
    probability: float | None = None


def draw_imputations(rbm: RBM, x: Tensor, n_draws: int, *, generator: torch.Generator | None = None) -> Tensor:
    """Return `n_draws` draws of the unknown values (NaN) of rows given the known ones, `(n_draws, n, d)`: exact, and
    independent of each other (multiple imputation; Rubin 1987)."""
    if n_draws < 1:
        raise ValueError(f"`n_draws` must be at least 1. Got {n_draws}.")
    rows = x.to(rbm.weight)
    drawn = rows.expand(n_draws, *rows.shape).clone()
    holes = rows.isnan().any(1).nonzero().squeeze(1)
    if len(holes):
        repeated = rows[holes].repeat(n_draws, 1)
        drawn[:, holes] = draw_observed(rbm, repeated, generator=generator).reshape(n_draws, len(holes), -1)
    return drawn


def impute(
    rbm: RBM, x: Tensor, columns: Sequence[Column], *, n_draws: int = 100, generator: torch.Generator | None = None
) -> list[Filled]:
    """Return the missing cells of encoded rows filled in by the model, in the units of the table, row by row."""
    filled: list[Filled] = []
    kept = [column for column in columns if column.width]
    starts = [sum(column.width for column in kept[:i]) for i in range(len(kept))]
    holes = x.isnan()
    rows = holes.any(1).nonzero().squeeze(1)
    for part in rows.split(max(1, 2**22 // (n_draws * x.shape[1]))):
        drawn = draw_imputations(rbm, x[part], n_draws, generator=generator)
        for column, start in zip(kept, starts, strict=True):
            missing = holes[part, start].nonzero().squeeze(1)
            if len(missing):
                block = drawn[:, missing, start : start + column.width].double()
                filled += _cells(column, block, part[missing].tolist())
    return sorted(filled, key=lambda cell: cell.row)


def _cells(column: Column, drawn: Tensor, rows: list[int]) -> list[Filled]:
    """Return the cells of one column from draws `(n_draws, n_rows, width)` of its block."""
    if column.is_numeric:
        x = column.inverse(drawn[..., 0])
        mean, std = x.mean(0), x.std(0, correction=0)
        ends = x.quantile(torch.tensor([0.05, 0.95], dtype=x.dtype), 0)
        told = [_as_values(column, value) for value in (mean, ends[0], ends[1])]
        return [
            Filled(row, column.name, value, std=float(s), low=low, high=high)
            for row, value, low, high, s in zip(rows, *told, std, strict=True)
        ]
    one_hot = torch.cat([1 - drawn, drawn], -1) if column.type == "binary" else drawn
    share = one_hot.mean(0)
    best = (share.cumsum(-1) < 0.5).sum(-1) if column.type == "ordinal" else share.argmax(-1)
    return [
        Filled(row, column.name, column.levels[code], probability=float(p[code]))
        for row, code, p in zip(rows, best.tolist(), share, strict=True)
    ]


def _as_values(column: Column, x: Tensor) -> list[Value]:
    cells = decode(column.forward(x)[:, None], [column])[column.name]
    return [cell for cell in cells if cell is not None]


def with_followers(table: Table, filled: Sequence[Filled], columns: Sequence[Column]) -> list[Filled]:
    """Return the filled cells of a table and those that follow from them or from known ones: copies, and what copies
    tell. They are as sure as what they follow from."""
    found = {(cell.row, cell.column): cell for cell in filled}
    whole = agreed(completed(table, filled), columns, on_trouble=lambda text: None)
    for copy in (column for column in columns if column.type == "copy"):
        for name, other in ((copy.of, copy.name), (copy.name, copy.of)):
            for row, (old, new) in enumerate(zip(table.get(name, ()), whole.get(name, ()), strict=True)):
                if old is None and new is not None and (row, name) not in found:
                    behind = found.get((row, other))
                    sure = 1.0 if behind is None else behind.probability
                    found[row, name] = Filled(row, name, new, probability=sure)
    return sorted(found.values(), key=lambda cell: cell.row)


def completed(table: Table, filled: Sequence[Filled]) -> Table:
    """Return a table with the filled cells in place; all others are as they were.

    >>> completed({"a": [1, None]}, [Filled(1, "a", 2)])
    {'a': [1, 2]}
    """
    result = {name: list(cells) for name, cells in table.items()}
    for cell in filled:
        result[cell.column][cell.row] = cell.value
    return result
