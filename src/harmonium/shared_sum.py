"""Sums over workers of one host, through memory that they share."""

from __future__ import annotations

import os
import tempfile
from functools import reduce
from pathlib import Path

import torch
from torch import Tensor

from harmonium import workers

_FOLDER = Path("/dev/shm")  # files that are memory


class SharedSum:
    """The sum of n numbers over all workers, where these share a host.

    Each writes its numbers into a row of shared memory, adds up its share of the columns of all rows, and copies the
    sum: the processes meet at two barriers of their group, and no number goes through a socket. All get the same bits,
    and the same for any order of arrival. A worker that does not come to a barrier is told of as in any other exchange.
    """

    def __init__(self, memory: Tensor) -> None:
        self.rows, self.result = memory[:-1], memory[-1]
        n = memory.shape[1]
        self._columns = slice(n * workers.rank() // workers.world(), n * (workers.rank() + 1) // workers.world())

    @staticmethod
    def of(n: int, parts: list[Tensor]) -> SharedSum | None:
        """Return the sum of n numbers of these types; None, to all workers, unless all can reach one memory."""
        world = workers.world()
        like = torch.empty(0, dtype=reduce(torch.promote_types, (part.dtype for part in parts)))
        on_cpu = all(part.device.type == "cpu" for part in parts)
        one_host = int(os.environ.get("LOCAL_WORLD_SIZE", str(world))) == world
        shape = (world + 1, n)
        size = shape[0] * n * like.element_size()
        name = ""
        if workers.is_first() and one_host and on_cpu and _FOLDER.is_dir():
            name = _make(size)
        name = workers.from_first(name)
        if not name:
            return None
        try:
            flat = torch.from_file(name, shared=True, size=shape[0] * n, dtype=like.dtype)
            seen = 1.0
        except RuntimeError:  # on another host, or in another container
            flat, seen = torch.empty(0), 0.0
        everybody = workers.add_up(torch.tensor([seen])).item() == world
        if workers.is_first():
            Path(name).unlink()  # it lasts as long as somebody holds it, and nothing is left of those who are killed
        return SharedSum(flat.view(shape)) if everybody else None

    def __call__(self, parts: list[Tensor]) -> Tensor:
        """Return the sum, over workers, of the numbers in these tensors one after the other."""
        torch.cat(parts, out=self.rows[workers.rank()])
        workers.meet()
        first, second, *others = self.rows[:, self._columns]
        total = torch.add(first, second, out=self.result[self._columns])
        for row in others:
            total.add_(row)
        workers.meet()
        return self.result.clone()


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
