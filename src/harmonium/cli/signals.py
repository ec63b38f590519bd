"""SIGINT and SIGTERM: save, then leave."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from harmonium.cli.stopped import Stopped
from harmonium.learning import Callback, Training


class StopSignals(Callback):
    """While training runs, a signal makes it stop after the update at hand; at other times it stops at once.

    A second signal does not wait.
    """

    def __init__(self) -> None:
        self.signum: int | None = None
        self.training: Training | None = None

    @contextmanager
    def installed(self) -> Iterator[StopSignals]:
        """Handle the two signals within the block."""
        old = {number: signal.signal(number, self.handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            self.training = None
            for number, handler in old.items():
                signal.signal(number, handler)

    def handle(self, signum: int, frame: FrameType | None) -> None:
        """Take note, or raise `Stopped` when there is nothing to save."""
        again, self.signum = self.signum is not None, signum
        if self.training is None or again:
            raise Stopped(signum)
        self.training.stop = True

    def on_start(self, training: Training) -> None:
        """From now on there is something to save."""
        self.training = training

    def done(self, text: str, training: Training | None = None) -> None:
        """Training is saved: raise `Stopped` if a signal came meanwhile, to any of its workers."""
        self.training = None
        if training is not None and training.division is not None:
            reached = training.division.agreed(self.signum is not None)
            self.signum = self.signum or (signal.SIGTERM if reached else None)
        if self.signum is not None:
            raise Stopped(self.signum, text)
