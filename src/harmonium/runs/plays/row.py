"""A row of a table: some cells are given, the others follow, and the row gets its score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from harmonium.data import Column, encode
from harmonium.evaluation.imputation import impute
from harmonium.evaluation.row_scores import score_rows
from harmonium.runs.plays.base import Move, Play, Seen, Session
from harmonium.runs.trained import Trained

N_DRAWS, MAX_TEXT = 200, 200


class Row(Play):
    """Missing cells get their mean or most probable level with its uncertainty; the row, its log-likelihood and how odd
    it is, with the columns that make it so. All is exact, up to the draws behind means and p-values."""

    name = "row"

    def suits(self, trained: Trained) -> bool:
        """Return whether the data are a table."""
        return trained.data.kind == "table"

    def opening(self, trained: Trained) -> Seen:
        """Return the columns, and a row drawn from the model to begin with."""
        columns = sorted(used(trained), key=lambda column: column.place)
        nothing = torch.full((1, sum(column.width for column in trained.data.columns)), torch.nan)
        generator = torch.Generator().manual_seed(0)
        typical = impute(trained.model, nothing, trained.data.columns, n_draws=N_DRAWS, generator=generator)
        begin = {cell.column: plain(cell.value) for cell in typical}
        return {"columns": [described(column) for column in columns], "typical": begin}

    def move(self, trained: Trained, session: Session, move: Move) -> Seen:
        """Return the missing cells filled in, and the score of those that are known."""
        cells = move.get("cells")
        if not isinstance(cells, Mapping):
            raise ValueError("`cells` must be a mapping from columns to values, null where they are missing.")
        columns = trained.data.columns
        table = {column.name: [read_cell(column, cells.get(column.name))] for column in used(trained)}
        unseen: list[str] = []
        x = encode(table, columns, on_unseen=unseen.append).to(trained.model.weight)
        generator = torch.Generator().manual_seed(0)  # the same row has the same score
        filled = impute(trained.model, x, columns, n_draws=N_DRAWS, generator=generator)
        seen: Seen = {"filled": {cell.column: told(cell) for cell in filled}, "messages": unseen}
        if bool((~x.isnan()).any()):
            scores = score_rows(trained.model, x, columns, generator=generator)
            seen |= {
                "log_likelihood": scores.log_likelihood[0].item(),
                "anomaly": scores.anomaly[0].item(),
                "p_value": scores.p_value[0].item(),
                "because": scores.because(0),
            }
        return seen


def used(trained: Trained) -> list[Column]:
    """Return the columns that the model has."""
    return [column for column in trained.data.columns if column.width]


def described(column: Column) -> Seen:
    """Return what a page must know of a column to ask for its value."""
    seen: Seen = {"name": column.name, "type": column.type, "levels": [plain(level) for level in column.levels]}
    if column.is_numeric and column.type != "date":
        seen |= {"low": column.low, "high": column.high, "decimals": column.decimals}
    return seen


def read_cell(column: Column, value: Any) -> Any:
    """Return a cell as the column takes it, None where it is missing."""
    if value is None or value == "":
        return None
    if column.is_numeric and column.type != "date":
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
            raise ValueError(f"{column.name} is a number. Got {str(value)[:40]!r}.")
        return value
    text = str(value)[:MAX_TEXT]
    if column.type == "date":
        import datetime

        try:
            return datetime.datetime.fromisoformat(text).replace(tzinfo=None)
        except ValueError:
            raise ValueError(f"{column.name} is a date, such as 2024-02-29. Got {text[:40]!r}.") from None
    return text


def told(cell: Any) -> Seen:
    """Return a filled cell as plain values."""
    return {
        "value": plain(cell.value),
        "low": plain(cell.low),
        "high": plain(cell.high),
        "std": cell.std,
        "probability": cell.probability,
    }


def plain(value: Any) -> Any:
    """Return a cell as JSON can hold it."""
    return value if isinstance(value, str | int | float | bool | None) else value.isoformat()
