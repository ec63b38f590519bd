"""Files that are either whole or not there: temporary file, fsync, rename, fsync of the folder."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

TEMPORARY = ".tmp-"
"""The prefix of everything that is not finished yet; whatever bears it may be removed when nobody writes."""


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a crash at any moment, sees the old content or the new one, never a part."""
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{path.name}")
    write_synced(temporary, content)
    temporary.replace(path)
    sync_folder(path.parent)


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and wait until the disk has it."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the entries of a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_atomic(path: Path) -> None:
    """Remove a file or folder: first from sight, then from the disk, so that no half of it is ever seen."""
    hidden = path.with_name(f"{TEMPORARY}{os.getpid()}-gone-{path.name}")
    path.rename(hidden)
    if hidden.is_dir():
        shutil.rmtree(hidden)
    else:
        hidden.unlink()


def remove_temporary(folder: Path) -> None:
    """Remove what a killed process left unfinished in a folder."""
    for path in folder.glob(f"{TEMPORARY}*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def sha256(content: bytes) -> str:
    """Return the SHA-256 sum of some bytes.

    >>> sha256(b"")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(content).hexdigest()
