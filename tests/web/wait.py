"""Waiting for what happens elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def until(holds: Callable[[], Any], seconds: float = 120.0) -> Any:
    """Wait until something holds: an event, not a time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = holds()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("it did not come to hold")
