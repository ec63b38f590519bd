"""One thread that computes, for everybody in turn: what takes long holds up no events."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from harmonium.web.limits import ANSWER_SECONDS, COMPUTE_SECONDS, N_WAITING
from harmonium.web.security import Refused

T = TypeVar("T")


class Computer:
    """Runs functions one after another in a thread of its own."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="harmonium-compute", initializer=give_way)
        self.n_waiting = 0

    async def run(self, function: Callable[[], T]) -> T:
        """Return what a function returns, or say that it takes too long; it then goes on by itself."""
        if self.n_waiting >= N_WAITING:
            raise Refused(429, "Too many computations wait for their turn. Try again in a moment.")
        self.n_waiting += 1
        future = asyncio.wrap_future(self._thread.submit(function))
        future.add_done_callback(self._done)
        try:
            return await asyncio.wait_for(asyncio.shield(future), ANSWER_SECONDS)
        except TimeoutError:
            raise Refused(
                408, "This takes longer than expected, such as reading large data. Try again in a moment."
            ) from None

    def _done(self, future: asyncio.Future[T]) -> None:
        self.n_waiting -= 1
        if not future.cancelled():
            future.exception()  # heard by whoever still waits

    def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def give_way() -> None:
    """Let trainings go first: on Linux, where each thread has a priority of its own."""
    if sys.platform == "linux":
        os.nice(10)


def deadline() -> float:
    """Return until when one move may compute, as `time.monotonic` counts."""
    return time.monotonic() + COMPUTE_SECONDS
