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
    pipes of a worker that is gone are closed, so that the others know at once. Each makes the pipes that it reads from,
    in a folder of its own; it writes into those of others (`join`) once all have told that theirs are there.
    """

    def __init__(self, folder: Path) -> None:
        self._handles: list[int] = []
        weakref.finalize(self, _close, self._handles)
        self._readers: list[int] = []
        self._writers: list[int] = []
        self._polls: list[select.poll] = []
        self._milliseconds = 1000 * workers.time_limit()
        for i in range((workers.world() - 1).bit_length()):
            if sys.platform != "win32":  # which has no folder in memory for them either
                os.mkfifo(folder / str(i), 0o600)
            self._readers.append(self._opened(folder / str(i), os.O_RDONLY))
            poll = select.poll()
            poll.register(self._readers[i], select.POLLIN)
            self._polls.append(poll)

    def join(self, folders: list[Path]) -> None:
        """Open the pipes of the others, whose folders these are, in the order of the workers."""
        for i in range(len(self._readers)):
            there = folders[(workers.rank() + 2**i) % len(folders)]
            self._writers.append(self._opened(there / str(i), os.O_WRONLY))

    def meet(self) -> None:
        """Wait until all workers have come here; raise if one is gone, or does not come in time."""
        with workers.in_words("meet the others"):
            for reader, writer, poll in zip(self._readers, self._writers, self._polls, strict=True):
                os.write(writer, b".")
                if not poll.poll(self._milliseconds):
                    raise TimeoutError("nobody wrote into the pipe")
                if not os.read(reader, 1):
                    raise ConnectionError("the pipe was closed")

    def _opened(self, path: Path, how: int) -> int:
        self._handles.append(os.open(path, how | os.O_NONBLOCK))
        return self._handles[-1]


def _close(handles: list[int]) -> None:
    for handle in handles:
        os.close(handle)
