"""How much memory there is, asked before much of it is taken."""

from __future__ import annotations

import os
from collections.abc import Iterable
from math import prod
from pathlib import Path

SMALL = 2**26
"""Bytes that are taken without asking."""

_GROUP = Path("/sys/fs/cgroup")


def available_bytes() -> int | None:
    """Return the memory that can still be taken, by this process's group too where it has a limit; None: not known."""
    found = [size for size in (_of_system(), _of_group()) if size is not None]
    return min(found, default=None)


def check_room(n_bytes: int, what: str) -> None:
    """Raise unless so many bytes can be taken, before the machine grinds to a halt.

    >>> check_room(10**15, "A weight")
    Traceback (most recent call last):
    ...
    ValueError: A weight needs about 1,000,000 GB of memory, and ... GB are there. Make it smaller.
    """
    if n_bytes <= SMALL:
        return
    there = available_bytes()
    if there is not None and n_bytes > there:
        raise ValueError(
            f"{what} needs about {in_gigabytes(n_bytes)} of memory, and {in_gigabytes(there)} are there. "
            "Make it smaller."
        )


def check_parameter(shape: Iterable[int]) -> None:
    """Raise unless a parameter of this shape finds room, in single precision."""
    sizes = tuple(shape)
    check_room(4 * prod(sizes), f"A parameter of shape {sizes}")


def in_gigabytes(n_bytes: int) -> str:
    """Return a number of bytes in words.

    >>> in_gigabytes(2_340_000_000), in_gigabytes(10**15)
    ('2.3 GB', '1,000,000 GB')
    """
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes < 1e11 else f"{n_bytes / 1e9:,.0f} GB"


def _of_system() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on Windows
        return None


def _of_group() -> int | None:
    try:
        limit, used = ((_GROUP / f"memory.{name}").read_text(encoding="ascii").strip() for name in ("max", "current"))
        return None if limit == "max" else max(0, int(limit) - int(used))
    except (OSError, ValueError):
        return None
