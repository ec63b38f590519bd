"""A folder of files of rows as one data set."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from harmonium.data.block_rows import BlockRows
from harmonium.data.parquet_rows import ParquetRows
from harmonium.data.rows_file import RowsFile

_READERS: dict[str, type[RowsFile | ParquetRows]] = {".npy": RowsFile, ".parquet": ParquetRows, ".pq": ParquetRows}


class RowsFolder(BlockRows):
    """The rows of all `.npy` and Parquet files in a folder, in the order of their names: shards larger than memory.

    >>> import numpy as np, tempfile
    >>> from harmonium.data import RowsFolder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for i in range(2):
    ...         np.save(f"{folder}/shard-{i}.npy", np.full((3, 2), i, dtype=np.uint8))
    ...     rows = RowsFolder(folder)
    ...     print(len(rows), rows[4])
    6 tensor([1, 1], dtype=torch.uint8)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        found = sorted(file for file in self.path.iterdir() if file.suffix in _READERS)
        if not found:
            raise ValueError(f"{path} must hold files of rows, {', '.join(_READERS)}. There is none.")
        self.files = [_READERS[file.suffix](file) for file in found]
        shapes = {tuple(file.shape[1:]): file.path.name for file in self.files}
        if len(shapes) > 1:
            raise ValueError(f"The rows of all files must have one shape. Got {shapes}.")
        self.window = min(file.window for file in self.files)
        self._ends = torch.tensor([len(file) for file in self.files]).cumsum(0)
        self.shape = (int(self._ends[-1]), *self.files[0].shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self) -> Tensor:
        """Return the blocks of all files."""
        return torch.cat([file.blocks() for file in self.files])

    def __getitems__(self, index: list[int]) -> list[Tensor]:
        numbers = torch.tensor(index, dtype=torch.int64)
        if len(numbers) and not (int(numbers.min()) >= 0 and int(numbers.max()) < len(self)):
            raise IndexError(f"{self.path} has rows 0 to {len(self) - 1}. Got {index}.")
        owner = torch.searchsorted(self._ends, numbers, right=True)
        rows: list[Tensor] = [torch.empty(0)] * len(index)
        for i in owner.unique().tolist():
            places = torch.nonzero(owner == i).squeeze(1)
            first = int(self._ends[i]) - len(self.files[i])
            found = self.files[i].__getitems__((numbers[places] - first).tolist())
            for place, row in zip(places.tolist(), found, strict=True):
                rows[place] = row
        return rows
