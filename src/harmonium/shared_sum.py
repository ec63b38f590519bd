"""Sums over workers of one host, through memory that they share."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from functools import reduce
from pathlib import Path

import torch
from torch import Tensor

from harmonium import workers
from harmonium.host_barrier import HostBarrier

_FOLDER = Path("/dev/shm")  # files that are memory


_FEW = 4  # workers: so few add up all numbers each, and meet once


class SharedSum:
    """The sum of n numbers over all workers, where these share a host.

    Each writes its numbers into a row of shared memory; they meet at a barrier, and each adds up the rows. More than
    four add up a share of the columns each, and meet once more before they copy the sum. No number goes through a
    socket. All get the same bits, whoever comes first. A worker that does not come to a barrier is told of as in any
    other exchange. Two sets of rows are used in turn, so that nobody writes where another still reads.
    """

    def __init__(self, memory: Tensor, barrier: HostBarrier) -> None:
        self.memory, self.barrier, self.turn = memory, barrier, 0
        n, rank, world = memory.shape[2], workers.rank(), workers.world()
        self._columns = slice(n * rank // world, n * (rank + 1) // world)

    @staticmethod
    def of(n: int, parts: list[Tensor]) -> SharedSum | None:
        """Return the sum of n numbers of these types; None, to all workers, unless all can reach one memory."""
        world = workers.world()
        like = torch.empty(0, dtype=reduce(torch.promote_types, (part.dtype for part in parts)))
        on_cpu = all(part.device.type == "cpu" for part in parts)
        one_host = int(os.environ.get("LOCAL_WORLD_SIZE", str(world))) == world
        shape = (2, world, n)
        name = ""
        if workers.is_first() and one_host and on_cpu and _FOLDER.is_dir():
            name = _make(math.prod(shape) * like.element_size(), world)
        name = workers.from_first(name)
        if not name:
            return None
        path = Path(name) / "rows"
        seen = path.is_file()  # not on another host, or in another container; `from_file` would make one there
        flat = torch.from_file(str(path), shared=True, size=math.prod(shape), dtype=like.dtype) if seen else like
        barrier = HostBarrier.of(path.parent, reachable=seen)
        if workers.is_first():
            shutil.rmtree(name)  # they last as long as somebody holds them, and nothing is left of those who are killed
        return None if barrier is None else SharedSum(flat.view(shape), barrier)

    def __call__(self, parts: list[Tensor]) -> None:
        """Add up, over workers, the numbers in flat tensors, in place."""
        rows, self.turn = self.memory[self.turn], 1 - self.turn
        torch.cat(parts, out=rows[workers.rank()])
        self.barrier.meet()
        if len(rows) > _FEW:
            first, *others = rows[:, self._columns]
            for row in others:
                first.add_(row)
            self.barrier.meet()
            for part, total in zip(parts, rows[0].split([len(part) for part in parts]), strict=True):
                part.copy_(total)
            return
        first, second, *others = (row.split([len(part) for part in parts]) for row in rows)
        for i, part in enumerate(parts):
            torch.add(first[i], second[i], out=part)
            for other in others:
                part.add_(other[i])


def _make(size: int, world: int) -> str:
    """Return the name of a folder with shared memory, and pipes for the workers; "" where there is no room."""
    folder = Path(tempfile.mkdtemp(prefix="harmonium-", dir=_FOLDER))
    try:
        with (folder / "rows").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)  # else a write beyond what there is would end the process
        HostBarrier.make_pipes(folder, world)
    except OSError:
        shutil.rmtree(folder)
        return ""
    return str(folder)
