"""One writer at a time: the lock of a run's folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a folder; a second process, or a second thread, that wants to write it is refused at once.

    Who holds it may take it again: `train` inside a command that has made the run is one writer.
    """
    lock = FileLock(folder.resolve() / LOCK, is_singleton=True)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise ValueError(f"{folder} is being trained by another process. Wait, or stop that one.") from None
    try:
        yield
    finally:
        lock.release()
