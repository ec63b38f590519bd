"""Rows of a Parquet file that are read when they are asked for."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from harmonium.data.block_rows import BlockRows
from harmonium.data.extras import require

_GROUPS = 4


class ParquetRows(BlockRows):
    """The rows of a Parquet file whose columns are numbers, each row a vector in single precision.

    A block is a row group, which is decoded as a whole; the last four stay in memory, and rows are shuffled within
    four. Missing cells are NaN. Write groups of some megabytes: `pyarrow.parquet.write_table(…, row_group_size=…)`.
    """

    window = _GROUPS

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        parquet = require("pyarrow.parquet", "tables", "reading Parquet files")
        with parquet.ParquetFile(self.path) as file:
            about, schema = file.metadata, file.schema_arrow
            sizes = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
        types = require("pyarrow.types", "tables", "reading Parquet files")
        numbers = (types.is_integer, types.is_floating, types.is_boolean)
        odd = [field.name for field in schema if not any(is_kind(field.type) for is_kind in numbers)]
        if odd:
            raise ValueError(
                f"{path} must hold columns of numbers. Got {odd[0]!r} of type {schema.field(odd[0]).type}. Leave it "
                "out, or encode it first (harmonium.data.read_table reads mixed tables into memory)."
            )
        self.columns, self._sizes = list(schema.names), torch.tensor(sizes, dtype=torch.int64)
        self.shape = (int(self._sizes.sum()), len(self.columns))
        self._ends = self._sizes.cumsum(0)
        self._group = lru_cache(maxsize=_GROUPS)(self._decoded)

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self) -> Tensor:
        """Return the number of rows in each row group."""
        return self._sizes

    def __getitems__(self, index: list[int]) -> list[Tensor]:
        numbers = torch.tensor(index, dtype=torch.int64)
        if len(numbers) and not (int(numbers.min()) >= 0 and int(numbers.max()) < len(self)):
            raise IndexError(f"{self.path} has rows 0 to {len(self) - 1}. Got {index}.")
        groups = torch.searchsorted(self._ends, numbers, right=True)
        rows = torch.empty(len(index), len(self.columns))
        for group in groups.unique().tolist():
            here = groups == group
            rows[here] = self._group(group)[numbers[here] - (self._ends[group] - self._sizes[group])]
        return list(rows.unbind(0))

    def _decoded(self, group: int) -> Tensor:
        parquet = require("pyarrow.parquet", "tables", "reading Parquet files")
        with parquet.ParquetFile(self.path) as file:
            table = file.read_row_group(group)
        columns = [torch.from_numpy(column.to_numpy().astype("float32")) for column in table.columns]
        return torch.stack(columns, dim=1)
