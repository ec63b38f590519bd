"""One gate for files: plain ones only, and a budget of memory before anything is unpacked or parsed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from harmonium.memory import check_room, in_gigabytes

VARIABLE = "HARMONIUM_MAX_BYTES"
"""The environment variable that lets a packed file unpack to more."""

FLOOR, RATIO = 2**28, 300
"""A packed file may unpack to so many bytes, or so many times its size, whichever is more."""

CHUNK = 1 << 24
MAX_ENTRIES = 1_000_000
"""Folders are not looked through further than this."""


def check_file(path: Path) -> int:
    """Return the size of a file, or raise: only a plain one is read, since a pipe or a device may never end."""
    state = path.stat()
    if stat.S_ISDIR(state.st_mode):
        raise ValueError(f"{path} is a folder, and a file is wanted.")
    if not stat.S_ISREG(state.st_mode):
        raise ValueError(f"{path} is a pipe or a device, not a plain file. Write what it gives into a file first.")
    check_room(state.st_size, f"{path}")
    return state.st_size


def unpacked_limit(packed: int) -> int:
    """Return how many bytes a packed file of this size may become.

    >>> unpacked_limit(140_000) == FLOOR, unpacked_limit(10**9) == 300 * 10**9
    (True, True)
    """
    told = os.environ.get(VARIABLE, "")
    return int(told) if told.isdecimal() else max(FLOOR, RATIO * packed)


def check_unpacked(n_bytes: int, packed: int, path: Path) -> None:
    """Raise if a packed file would become more than it may, or more than there is memory."""
    limit = unpacked_limit(packed)
    if n_bytes > limit:
        raise ValueError(
            f"{path} has {packed:,} bytes and would take {in_gigabytes(n_bytes)} or more of memory once it is "
            f"unpacked: {in_gigabytes(limit)} are allowed for a file of its size. If you trust it, allow more with "
            f"the environment variable {VARIABLE}."
        )
    check_room(n_bytes, f"{path}, unpacked,")


def read_unpacked(file: IO[bytes], path: Path) -> bytes:
    """Read a stream that unpacks a file to its end, and no further than it may."""
    packed, parts, n = path.stat().st_size, list[bytes](), 0
    while part := file.read(CHUNK):
        n += len(part)
        check_unpacked(n, packed, path)
        parts.append(part)
    return b"".join(parts)


def walk(folder: Path, wanted: Callable[[str], bool], depth: int | None = None) -> Iterator[Path]:
    """Yield the plain files of a folder whose names are wanted, and of those within it (links to folders are not
    followed); a folder of more than a million entries is refused."""
    waiting, n = [(folder, 0)], 0
    while waiting:
        place, level = waiting.pop()
        try:
            entries = sorted(os.scandir(place), key=lambda entry: entry.name)
        except PermissionError:
            continue
        n += len(entries)
        if n > MAX_ENTRIES:
            raise ValueError(f"{folder} holds more than {MAX_ENTRIES:,} files and folders. Name one that holds less.")
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if depth is None or level < depth:
                    waiting.append((Path(entry.path), level + 1))
            elif wanted(entry.name) and entry.is_file():
                yield Path(entry.path)
