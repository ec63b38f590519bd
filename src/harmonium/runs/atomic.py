"""Files that are either whole or not there: temporary file, fsync, rename, fsync of the folder."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TEMPORARY = ".tmp-"
"""The prefix of everything that is not finished yet; whatever bears it may be removed when nobody writes."""


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash at any moment, sees the old content or the new one, never a part."""
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{path.name}")
    with room_for(path, temporary):
        write_synced(temporary, content)
        temporary.replace(path)
    sync_folder(path.parent)


@contextmanager
def room_for(path: Path, temporary: Path) -> Iterator[None]:
    """Where the disk does not take what is written, remove what is unfinished and say which path, and how to go on."""
    try:
        yield
    except OSError as error:
        remove(temporary)
        raise OSError(
            error.errno,
            f"{path} could not be written ({error.strerror}). What was there before is untouched. Make room or choose "
            "another folder; then harmonium resume goes on from the last checkpoint",
        ) from error


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and wait until the disk has it."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the entries of a folder."""
    if os.name == "nt":  # Windows has no such call; it orders its own entries
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_atomic(path: Path) -> None:
    """Remove a file or folder: first from sight, then from the disk, so that no half of it is ever seen."""
    hidden = path.with_name(f"{TEMPORARY}{os.getpid()}-gone-{path.name}")
    path.rename(hidden)
    remove(hidden)


def remove(path: Path) -> None:
    """Remove a file or a folder with all that is in it, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_temporary(folder: Path) -> None:
    """Remove what a killed process left unfinished in a folder."""
    for path in folder.glob(f"{TEMPORARY}*"):
        remove(path)


def sha256(content: bytes) -> str:
    """Return the SHA-256 sum of some bytes.

    >>> sha256(b"")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(content).hexdigest()
