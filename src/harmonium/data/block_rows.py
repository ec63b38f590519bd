"""Data sets whose rows lie in blocks on a disk: what order they can be read in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils.data import Dataset

from harmonium.draws import draw_integers, draw_permutation


class BlockRows(Dataset[Tensor]):
    """Rows that are read when they are asked for, and lie in blocks: rows of a block cost little more than one of them.

    An epoch goes through the blocks in random order, `window` of them at a time, whose rows are shuffled together: all
    rows where there are no more blocks. Neither memory nor a checkpoint holds a number for each row.
    """

    window: int = 64

    @abstractmethod
    def blocks(self) -> Tensor:
        """Return how many rows each block has, int64."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def __getitems__(self, index: list[int]) -> list[Tensor]:
        """Return the rows with these numbers."""

    def __getitem__(self, index: int) -> Tensor:
        return self.__getitems__([index])[0]

    def draw_order(self, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw the order of an epoch: the seed of what is drawn within windows, then the numbers of the blocks."""
        seed = draw_integers(2**62, (1,), generator=generator)
        return torch.cat([seed, draw_permutation(len(self.blocks()), generator=generator)])

    def in_order(self, order: Tensor, batch_size: int, position: int = 0) -> Iterator[Tensor]:
        """Go through the numbers of the rows in an order, batch by batch, from the row at `position` of the epoch on.

        >>> from harmonium.data import RowsFile
        >>> import numpy as np, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(f"{folder}/rows.npy", np.eye(3, dtype=np.uint8))
        ...     rows = RowsFile(f"{folder}/rows.npy")
        >>> order = rows.draw_order(generator=torch.Generator().manual_seed(0))
        >>> sorted(torch.cat(list(rows.in_order(order, 2))).tolist())
        [0, 1, 2]
        """
        sizes = self.blocks()
        starts = sizes.cumsum(0) - sizes
        if len(order) != len(sizes) + 1 or not torch.equal(order[1:].sort().values, torch.arange(len(sizes))):
            raise IndexError(
                f"The order of the data names {len(order) - 1} blocks of rows. There are {len(sizes)}. A run goes on "
                "with the data it began with."
            )
        waiting, passed = order[:0], 0
        for i, window in enumerate(order[1:].split(self.window)):
            n = int(sizes[window].sum())
            if passed + n > position:
                rows = torch.cat([torch.arange(int(sizes[b])) + starts[b] for b in window])
                own = torch.Generator().manual_seed((int(order[0]) + i) % 2**63)
                rows = rows[draw_permutation(n, generator=own)]
                waiting = torch.cat([waiting, rows[max(0, position - passed) :]])
                n_whole = len(waiting) // batch_size * batch_size
                yield from waiting[:n_whole].split(batch_size) if n_whole else ()
                waiting = waiting[n_whole:]
            passed += n
        if len(waiting):
            yield waiting
