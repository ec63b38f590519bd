"""How a training goes, on a terminal or in a notebook."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

from harmonium.learning.callback import Callback
from harmonium.learning.history import Record

FIRST = ("validation_log_likelihood", "log_likelihood", "validation_accuracy", "pseudo_likelihood", "reconstruction")
"""What is told, the most telling first; what a training does not measure is left out."""

_REFRESH = 0.1  # seconds between two moves of the bar


class Progress(Callback):
    """A bar over the epochs with the newest likelihood beside it: `fit(..., callbacks=[Progress()])`.

    It is that of tqdm, which draws itself in a terminal and in a notebook alike (`pip install tqdm`).
    """

    def __init__(self) -> None:
        try:
            self._tqdm: Any = import_module("tqdm.auto").tqdm
        except ImportError as error:
            raise ImportError(
                'A progress bar needs tqdm. Install it with: pip install "harmonium[progress]"'
            ) from error
        self.bar: Any = None
        self.last = 0.0

    def on_start(self, training: Any) -> None:
        """Show the bar."""
        self.bar = self._tqdm(total=training.epochs, initial=training.epoch, unit="epoch")

    def on_update(self, training: Any) -> None:
        """Move it within an epoch now and then."""
        now = time.monotonic()
        if now - self.last >= _REFRESH:
            self.last = now
            self.bar.n = round(training.epoch + training.position / max(1, len(training.batches)), 2)
            self.bar.refresh()

    def on_epoch(self, training: Any, record: Record) -> None:
        """Tell what the epoch measured."""
        self.bar.n = training.epoch
        self.bar.set_postfix_str(told(record))

    def on_end(self, training: Any) -> None:
        """Leave the bar as it is."""
        self.bar.close()


def told(record: Record) -> str:
    """Return the three most telling numbers of a record, likelihoods first.

    >>> told({"epoch": 1, "reconstruction": 0.25, "log_likelihood": -20.123})
    'log-likelihood -20.12, reconstruction 0.25'
    """
    found = [(name, record[name]) for name in FIRST if record.get(name) is not None]
    return ", ".join(f"{name.replace('_', ' ').replace('log l', 'log-l')} {value:.4g}" for name, value in found[:3])
