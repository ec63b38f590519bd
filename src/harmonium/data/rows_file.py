"""Rows of a file that are read when they are asked for: data larger than memory."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from harmonium.data.block_rows import BlockRows

_BLOCK = 2**20  # bytes


class RowsFile(BlockRows):
    """The rows of a `.npy` file as a data set: `fit(model, RowsFile("rows.npy"))` holds a batch of them at a time.

    The file is read, not mapped: mapped pages count as memory of the process. Each of several workers reads its own
    rows. They are shuffled within 64 blocks of a megabyte, and the blocks among each other (`BlockRows`). Integers
    become floats batch by batch.

    >>> import numpy as np, tempfile
    >>> from harmonium.data import RowsFile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/rows.npy", np.eye(3, dtype=np.uint8))
    ...     RowsFile(f"{folder}/rows.npy")[2]
    tensor([0, 0, 1], dtype=torch.uint8)
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        mapped = np.load(self.path, mmap_mode="r", allow_pickle=False)  # checks the header against the size
        if not isinstance(mapped, np.memmap) or mapped.ndim < 2 or not mapped.flags.c_contiguous:
            raise ValueError(
                f"{path} must hold one array of rows in C order, (n, …). Got {type(mapped).__name__} of shape "
                f"{getattr(mapped, 'shape', None)}. Save it with numpy.save(path, numpy.ascontiguousarray(rows))."
            )
        if mapped.dtype.kind not in "biuf" or not mapped.dtype.isnative:
            raise ValueError(f"{path} must hold numbers of this machine. Got {mapped.dtype}. Convert it first.")
        self.shape, self.dtype, self._start = mapped.shape, mapped.dtype, int(mapped.offset)
        self._row = self.dtype.itemsize * math.prod(self.shape[1:])

    def __len__(self) -> int:
        return int(self.shape[0])

    def blocks(self) -> Tensor:
        """Return the number of rows in each megabyte of the file."""
        n, size = len(self), max(1, _BLOCK // max(1, self._row))
        sizes = torch.full((-(-n // size),), size)
        sizes[-1:] = n - size * (len(sizes) - 1)
        return sizes

    def __getitems__(self, index: list[int]) -> list[Tensor]:
        rows = np.empty((len(index), *self.shape[1:]), dtype=self.dtype)
        places = rows.reshape(len(index), -1).view(np.uint8)
        with self.path.open("rb", buffering=0) as file:
            for i, number in enumerate(index):
                if not 0 <= number < len(self):
                    raise IndexError(f"{self.path} has rows 0 to {len(self) - 1}. Got {number}.")
                file.seek(self._start + number * self._row)
                if file.readinto(places[i].data) != self._row:
                    raise ValueError(f"{self.path} ends within row {number}: it was cut short. Write it again.")
        return list(torch.from_numpy(rows).unbind(0))
