"""Metrics for other people's dashboards: TensorBoard, and Weights & Biases."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from harmonium.learning.callback import Callback
from harmonium.learning.history import Record


class TensorBoard(Callback):
    """Writes the metrics of every epoch into a folder that TensorBoard reads (`pip install tensorboard`).

    `writer` has `add_scalar(name, value, step)` and `close()`; it is a `SummaryWriter` for `folder` unless given.
    """

    def __init__(self, folder: str | os.PathLike[str] = "tensorboard", *, writer: Any = None) -> None:
        if writer is None:
            try:
                writer = import_module("torch.utils.tensorboard").SummaryWriter(os.fspath(folder))
            except ImportError as error:
                raise ImportError(
                    'TensorBoard is not installed. Install it with: pip install "harmonium[tensorboard]"'
                ) from error
        self.folder, self.writer = folder, writer

    def on_epoch(self, training: Any, record: Record) -> None:
        """Write the numbers of the epoch, at its update."""
        for name, value in numbers(record).items():
            self.writer.add_scalar(name, value, record["update"])

    def on_end(self, training: Any) -> None:
        """Close the file."""
        self.writer.close()


class WeightsAndBiases(Callback):
    """Logs the metrics of every epoch to a run of Weights & Biases (`pip install wandb`).

    `run` is what `wandb.init(...)` returned; one is made with `options` unless given, and then finished at the end.
    """

    def __init__(self, *, run: Any = None, **options: Any) -> None:
        self.own = run is None
        if run is None:
            try:
                run = import_module("wandb").init(**options)
            except ImportError as error:
                raise ImportError('wandb is not installed. Install it with: pip install "harmonium[wandb]"') from error
        self.run = run

    def on_epoch(self, training: Any, record: Record) -> None:
        """Log the numbers of the epoch, at its update."""
        self.run.log(numbers(record), step=record["update"])

    def on_end(self, training: Any) -> None:
        """Finish the run, if it was begun here."""
        if self.own:
            self.run.finish()


def numbers(record: Record) -> dict[str, float]:
    """Return what of a record is a number, without its place in time.

    >>> numbers({"epoch": 1, "update": 9, "reconstruction": 0.25, "messages": ["dead units"]})
    {'reconstruction': 0.25}
    """
    return {
        name: float(value)
        for name, value in record.items()
        if name not in ("epoch", "update") and isinstance(value, int | float) and not isinstance(value, bool)
    }
