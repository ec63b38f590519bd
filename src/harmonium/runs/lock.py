"""One writer at a time: the lock of a run's folder."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

if sys.platform != "win32":
    import fcntl

LOCK = ".lock"

_PATIENCE = 2.0  # seconds: longer than those who look at the lock ever hold it


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Hold a folder, and give whether it was not held yet; a second process, or thread, that wants to write is refused.

    Who holds it may take it again: `train` inside a command that has made the run is one writer.
    """
    lock = FileLock(folder.resolve() / LOCK, is_singleton=True)
    anew = not lock.is_locked
    try:
        lock.acquire(timeout=_PATIENCE, poll_interval=0.02)
    except Timeout:
        raise ValueError(f"{folder} is being trained by another process. Wait, or stop that one.") from None
    try:
        yield anew
    finally:
        lock.release()


def is_locked(folder: Path) -> bool:
    """Return whether somebody writes a folder now. Nothing is made, and those who look do not hinder each other.

    The lock is tried for a moment, shared with others who look, so that a writer who comes just then waits for it.
    """
    try:
        file = os.open(folder.resolve() / LOCK, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        if sys.platform == "win32":
            return _is_taken(folder.resolve() / LOCK)
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # closing lets it go
    except OSError as error:
        return error.errno in (errno.EAGAIN, errno.EACCES)
    finally:
        os.close(file)
    return False


def _is_taken(path: Path) -> bool:
    """Return whether a lock cannot be had, where locks are not shared (Windows)."""
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return True
    lock.release()
    return False
