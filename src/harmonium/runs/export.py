"""Samples as files: arrays and tables."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from torch import Tensor

from harmonium.data import Data, decode


def write_array(x: Tensor, path: Path) -> None:
    """Write samples as a NumPy array, `(n, *shape)`."""
    with path.open("wb") as file:
        np.save(file, x.detach().cpu().numpy(), allow_pickle=False)


def write_table(x: Tensor, data: Data, path: Path) -> None:
    """Write samples as CSV: a table in its own columns and levels, other data as numbers."""
    if data.kind == "table":
        table = decode(x, data.columns)
        header, rows = list(table), list(zip(*table.values(), strict=True))
    else:
        flat = x.flatten(1)
        header, rows = [f"x{i}" for i in range(flat.shape[1])], [tuple(row) for row in flat.tolist()]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
