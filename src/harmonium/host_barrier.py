"""Where the workers of one host wait for each other: pipes between them, and no thread in between."""

from __future__ import annotations

import os
import select
import sys
import weakref
from pathlib import Path

from harmonium import workers


class HostBarrier:
    """A place that nobody leaves before all have come, for workers of one host.

    In round i each worker writes a byte to the one 2ⁱ places on and waits for that of the one 2ⁱ places back; after
    `log₂ world` rounds it has heard of all, at first or second hand (Hensgen, Finkel and Manber 1988). Gloo's barrier
    does the same through sockets and two threads of its own, which workers that compute must first make room for. The
    pipes of a worker that is gone are closed, so that the others know at once.
    """

    def __init__(self, readers: list[int], writers: list[int]) -> None:
        self._pairs = list(zip(readers, writers, strict=True))
        self._polls = [select.poll() for _ in readers]
        for poll, reader in zip(self._polls, readers, strict=True):
            poll.register(reader, select.POLLIN)
        self._milliseconds = 1000 * workers.time_limit()
        weakref.finalize(self, _close, [*readers, *writers])

    @staticmethod
    def make_pipes(folder: Path, world: int) -> None:
        """Make the pipes of so many workers, for all of them."""
        if sys.platform != "win32":  # which has no folder in memory for them either
            for rank in range(world):
                for i in range(_n_rounds(world)):
                    os.mkfifo(folder / f"{rank}-{i}", 0o600)

    @staticmethod
    def of(folder: Path, *, reachable: bool) -> HostBarrier | None:
        """Return the barrier of all workers, whose pipes are in this folder; None, to all, if one cannot reach it."""
        rank, world = workers.rank(), workers.world()
        rounds = range(_n_rounds(world))
        readers = _opened([folder / f"{rank}-{i}" for i in rounds if reachable], os.O_RDONLY)
        writers: list[int] = []
        if workers.agreed(len(readers) == len(rounds)):  # a pipe is written to only when somebody reads
            writers = _opened([folder / f"{(rank + 2**i) % world}-{i}" for i in rounds], os.O_WRONLY)
            if workers.agreed(len(writers) == len(rounds)):
                return HostBarrier(readers, writers)
        _close([*readers, *writers])
        return None

    def meet(self) -> None:
        """Wait until all workers have come here; raise if one is gone, or does not come in time."""
        with workers.in_words("add up gradients"):
            for (reader, writer), poll in zip(self._pairs, self._polls, strict=True):
                os.write(writer, b".")
                if not poll.poll(self._milliseconds):
                    raise TimeoutError("nobody wrote into the pipe")
                if not os.read(reader, 1):
                    raise ConnectionError("the pipe was closed")


def _n_rounds(world: int) -> int:
    return (world - 1).bit_length()


def _opened(paths: list[Path], how: int) -> list[int]:
    """Return those of the pipes that can be opened, a reader before the writer of each."""
    found = []
    for path in paths:
        try:
            found.append(os.open(path, how | os.O_NONBLOCK))
        except OSError:
            break
    return found


def _close(handles: list[int]) -> None:
    for handle in handles:
        os.close(handle)
