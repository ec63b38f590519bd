"""Train a run: from its start, or from its last checkpoint, with the same result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from harmonium.learning import Callback, ParameterAverage, Training, restore, snapshot
from harmonium.runs.build import build_training
from harmonium.runs.run import METRICS, TIMING, Run
from harmonium.types import State

MIN_SECONDS = 1.0
"""The least time between the checkpoints of two epochs: the shortest epochs are not slowed down by the disk."""


class Recorder(Callback):
    """Writes metrics and checkpoints while a run trains.

    Each epoch's record gains its learning rate and the health messages that are new.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.last = time.monotonic()
        self.saved = (-1, -1)
        self.n_messages = 0
        self.learning_rate = 0.0

    def on_start(self, training: Training) -> None:
        """Make the metrics those of the state that training starts from."""
        self.run.write_metrics(training.history.records)
        self.n_messages = sum(len(record.get("messages", ())) for record in training.history.records)

    def on_update(self, training: Training) -> None:
        """Write a checkpoint within an epoch when it is time."""
        section = self.run.config.run
        self.learning_rate = training.optimizer.param_groups[0]["lr"]
        if training.position >= len(training.order):  # the end of the epoch comes next
            return
        often = section.checkpoint_updates
        if (often and training.update % often == 0) or time.monotonic() - self.last >= section.checkpoint_seconds:
            self.save(training)

    def on_epoch(self, training: Training, record: dict[str, Any]) -> None:
        """Write the metrics of the epoch, and a checkpoint."""
        record["learning_rate"] = self.learning_rate
        new = training.history.messages[self.n_messages :]
        if new:
            record["messages"] = new
        self.n_messages = len(training.history.messages)
        self.run.append(METRICS, record)
        self.run.append(TIMING, {"epoch": training.epoch, "update": training.update, "time": time.time()})
        often = self.run.config.run.checkpoint_updates
        if often or time.monotonic() - self.last >= MIN_SECONDS:
            self.save(training)

    def save(self, training: Training) -> None:
        """Write the training state and the model, unless this update is saved already."""
        if self.saved == (training.update, training.epoch):
            return
        tensors, values = snapshot(training)
        self.run.checkpoints.save(tensors, values)
        self.run.write_model(final_parameters(training))
        self.last, self.saved = time.monotonic(), (training.update, training.epoch)


def final_parameters(training: Training) -> State:
    """Return the parameters to keep: their average where there is one, else the newest."""
    state = dict(training.model.state_dict())
    for transform in training.transforms:
        if isinstance(transform, ParameterAverage):
            state |= transform.average
    return state


def train(run: Run, *, callbacks: Sequence[Callback] = (), on_message: Callable[[str], None] | None = None) -> Training:
    """Train a run to its last epoch, from its newest whole checkpoint if there is one, and write what it leaves.

    A run that was killed at any moment and is trained again ends with the same bits: parameters, chains and metrics.
    A callback may set `training.stop`: the state is then saved where it is. `on_message` is told of damaged files.
    """
    with run.writing():
        section = run.config.run
        if section.threads is not None:
            torch.set_num_threads(section.threads)
        recorder = Recorder(run)
        training = build_training(run.config, run.prepared, [recorder, *callbacks])
        saved = run.checkpoints.load(on_damage=on_message)
        if saved is not None:
            restore(training, *saved)
        training.run()
        recorder.save(training)
        return training
