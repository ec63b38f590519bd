"""Sums over workers of one host, through memory that they share."""

from __future__ import annotations

import math
import os
import tempfile
from functools import reduce
from pathlib import Path

import torch
from torch import Tensor

from harmonium import workers

_FOLDER = Path("/dev/shm")  # files that are memory


_FEW = 4  # workers: so few add up all numbers each, and meet once


class SharedSum:
    """The sum of n numbers over all workers, where these share a host.

    Each writes its numbers into a row of shared memory; they meet at a barrier of their group, and each adds up the
    rows. More than four add up a share of the columns each, and meet once more before they copy the sum. No number goes
    through a socket. All get the same bits, whoever comes first. A worker that does not come to a barrier is told of as
    in any other exchange. Two sets of rows are used in turn, so that nobody writes where another still reads.
    """

    def __init__(self, memory: Tensor) -> None:
        self.memory, self.turn = memory, 0
        self.result = torch.empty_like(memory[0, 0])
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
        size = math.prod(shape) * like.element_size()
        name = ""
        if workers.is_first() and one_host and on_cpu and _FOLDER.is_dir():
            name = _make(size)
        name = workers.from_first(name)
        if not name:
            return None
        seen = Path(name).is_file()  # not on another host, or in another container; `from_file` would make one there
        flat = torch.from_file(name, shared=True, size=math.prod(shape), dtype=like.dtype) if seen else like
        everybody = workers.add_up(torch.tensor([float(seen)])).item() == world
        if workers.is_first():
            Path(name).unlink()  # it lasts as long as somebody holds it, and nothing is left of those who are killed
        return SharedSum(flat.view(shape)) if everybody else None

    def __call__(self, parts: list[Tensor]) -> Tensor:
        """Return the sum, over workers, of the numbers in a row of tensors; the next call writes over it."""
        rows, self.turn = self.memory[self.turn], 1 - self.turn
        torch.cat(parts, out=rows[workers.rank()])
        workers.meet()
        if len(rows) <= _FEW:
            torch.add(rows[0], rows[1], out=self.result)
            for row in rows[2:]:
                self.result.add_(row)
            return self.result
        first, *others = rows[:, self._columns]
        for row in others:
            first.add_(row)
        workers.meet()
        return self.result.copy_(rows[0])


def _make(size: int) -> str:
    """Return the name of a file of shared memory; "" where there is no room."""
    handle, name = tempfile.mkstemp(prefix="harmonium-", dir=_FOLDER)
    try:
        os.posix_fallocate(handle, 0, size)  # else a write beyond what there is would end the process
    except OSError:
        Path(name).unlink()
        return ""
    finally:
        os.close(handle)
    return name
