"""Sums over workers of one host, through memory that they share."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

import torch
from torch import Tensor

from harmonium import workers
from harmonium.host_barrier import HostBarrier

_FOLDER = Path("/dev/shm")  # files that are memory


_FEW = 4  # workers: so few add up all numbers each, and meet once


class SharedSum:
    """The sum of up to n numbers over all workers, where these share a host.

    Each writes its numbers into a row of shared memory; they meet at a barrier, and each adds up the rows. More than
    four add up a share of the columns each, and meet once more before they copy the sum. No number goes through a
    socket. All get the same bits, whoever comes first. A worker that does not come to a barrier is told of as in any
    other exchange. Two sets of rows are used in turn, so that nobody writes where another still reads.

    It begins with an `offer`, a text that all tell each other, with other things: whose memory this is, and where. Then
    all `join`, if they can, and forget the names: nothing is left of those who are killed.
    """

    def __init__(self, n: int, parts: Sequence[Tensor]) -> None:
        self.n, self.turn = n, 0
        self._dtype = reduce(torch.promote_types, (part.dtype for part in parts))
        self._folder: Path | None = None
        world = workers.world()
        one_host = int(os.environ.get("LOCAL_WORLD_SIZE", str(world))) == world
        if one_host and all(part.device.type == "cpu" for part in parts) and _FOLDER.is_dir():
            self._make((2, world, n))

    @staticmethod
    def of(n: int, parts: Sequence[Tensor]) -> SharedSum | None:
        """Return the sum of n numbers of these types; None, to all workers, unless all can reach one memory."""
        shared = SharedSum(n, parts)
        try:
            return shared if shared.join(workers.told(shared.offer)) else None
        finally:
            shared.withdraw()

    def _make(self, shape: tuple[int, int, int]) -> None:
        """Make a folder with pipes, and memory if this is the first worker; leave nothing where there is no room."""
        folder = self._folder = Path(tempfile.mkdtemp(prefix="harmonium-", dir=_FOLDER))
        try:
            if workers.is_first():
                with (folder / "rows").open("wb") as file:  # else a write beyond what there is would end the process
                    os.posix_fallocate(file.fileno(), 0, math.prod(shape) * self._dtype.itemsize)
            self.barrier = HostBarrier(folder)
        except OSError:
            self.withdraw()

    @property
    def offer(self) -> str:
        """Which memory this worker can reach, the kernel's and mount's, and where its pipes are; "" if none."""
        if self._folder is None:
            return ""
        boot, there = Path("/proc/sys/kernel/random/boot_id"), _FOLDER.stat()
        kernel = boot.read_text().strip() if boot.is_file() else ""
        return f"{kernel} {there.st_dev} {there.st_ino} {self._folder.stat().st_uid} {self._folder.name}"

    def join(self, offers: Sequence[str]) -> bool:
        """Join the others, whose offers these are; return, to all workers alike, whether they share one memory."""
        places, names = zip(*(offer.rpartition(" ")[::2] for offer in offers), strict=True)
        if not all(offers) or len(set(places)) > 1:
            return False
        folders = [_FOLDER / name for name in names]
        shape = (2, len(folders), self.n)
        with workers.in_words("share memory"):
            rows = str(folders[0] / "rows")
            flat = torch.from_file(rows, shared=True, size=math.prod(shape), dtype=self._dtype)
            self.memory = flat.view(shape)
            self._columns = slice(self.n * workers.rank() // shape[1], self.n * (workers.rank() + 1) // shape[1])
            self.barrier.join(folders)
        self.barrier.meet()
        return True

    def withdraw(self) -> None:
        """Remove the names of what all have by now, or nobody wants."""
        if self._folder is not None:
            shutil.rmtree(self._folder)
            self._folder = None

    def rows(self, parts: Sequence[Tensor]) -> Tensor:
        """Return the numbers of all workers, a row each, to be read before the next but one exchange."""
        rows, self.turn = self.memory[self.turn, :, : sum(len(part) for part in parts)], 1 - self.turn
        torch.cat(list(parts), out=rows[workers.rank()])
        self.barrier.meet()
        return rows

    def __call__(self, parts: Sequence[Tensor]) -> None:
        """Add up, over workers, the numbers in flat tensors, in place."""
        rows, sizes = self.rows(parts), [len(part) for part in parts]
        if len(rows) > _FEW:
            first, *others = rows[:, self._columns]
            for row in others:
                first.add_(row)
            self.barrier.meet()
            for part, total in zip(parts, rows[0].split(sizes), strict=True):
                part.copy_(total)
            return
        first, second, *others = (row.split(sizes) for row in rows)
        for i, part in enumerate(parts):
            torch.add(first[i], second[i], out=part)
            for other in others:
                part.add_(other[i])
