"""Samples as files: arrays and tables."""

from __future__ import annotations

import csv
import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from torch import Tensor

from harmonium.data import Data, decode
from harmonium.data.column import Value


def write_array(x: Tensor, path: Path) -> None:
    """Write samples as a NumPy array, `(n, *shape)`."""
    with path.open("wb") as file:
        np.save(file, x.detach().cpu().numpy(), allow_pickle=False)


def write_cells(table: Mapping[str, Sequence[Value | None]], path: Path) -> None:
    """Write the cells of a table as CSV; missing ones are empty, days are dates without a time."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*(map(as_text, cells) for cells in table.values()), strict=True))


def as_text(cell: Value | None) -> Value:
    """Return a cell as it is written.

    >>> as_text(datetime.datetime(2024, 2, 29)), as_text(None), as_text(1.5)
    ('2024-02-29', '', 1.5)
    """
    if isinstance(cell, datetime.datetime):
        return cell.date().isoformat() if cell.time() == datetime.time() else cell.isoformat(sep=" ")
    return "" if cell is None else cell


def write_table(x: Tensor, data: Data, path: Path) -> None:
    """Write samples as CSV: a table in its own columns and levels, other data as numbers."""
    if data.kind == "table":
        write_cells(decode(x, data.columns), path)
    else:
        write_cells({f"x{i}": values.tolist() for i, values in enumerate(x.flatten(1).unbind(1))}, path)
