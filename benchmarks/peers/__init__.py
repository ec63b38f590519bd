"""One adapter a peer: each returns contenders that do the work of a case by the peer's public functions."""

from __future__ import annotations

import sys
from collections.abc import Callable

from benchmarks.runner import Contender


def installed(*makers: Callable[[], Contender]) -> list[Contender]:
    """Return the contenders whose packages are installed, and name the others."""
    found = []
    for maker in makers:
        try:
            found.append(maker())
        except ImportError as missing:
            print(f"  left out: {missing}", file=sys.stderr, flush=True)
    return found
