"""The one checkpointer: what a training writes into its folder, and how it goes on from there."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from harmonium import workers
from harmonium.learning import Callback, Training
from harmonium.learning.monitors import KeepBest, Patience
from harmonium.learning.state import restore, snapshot
from harmonium.learning.state_check import check_state
from harmonium.learning.transforms import ParameterAverage
from harmonium.runs.folder import METRICS, TIMING, RunFolder
from harmonium.types import State

_LOOK = 0.25  # seconds between two looks for a request to stop

MIN_SECONDS = 1.0
"""The least time between the checkpoints of two epochs: the shortest epochs are not slowed down by the disk."""


class Recorder(Callback):
    """Writes metrics and checkpoints while a training runs; `run` goes on from the newest that is whole.

    Within an epoch a checkpoint is written every `seconds`, and every `updates` updates if that is not 0; at the end of
    an epoch when at least `least` seconds have passed since the last. Each epoch's record gains its learning rate and
    the health messages that are new. The model is written with each checkpoint, unless not `keeps_model`. Of several
    workers all take part in a checkpoint, one update after one of them wishes it, and the first writes it. A training
    that is asked to stop (`RunFolder.ask_to_stop`) does so within a moment.
    """

    def __init__(
        self,
        folder: RunFolder,
        *,
        seconds: float = 60.0,
        updates: int = 0,
        least: float = MIN_SECONDS,
        keeps_model: bool = True,
    ) -> None:
        self.folder, self.seconds, self.updates, self.least = folder, seconds, updates, least
        self.keeps_model = keeps_model
        self.last, self.saved = time.monotonic(), (-1, -1)
        self.looked = self.last
        self.n_messages, self.learning_rate = 0, 0.0
        self._since, self._before = time.process_time(), folder.cpu_seconds

    @property
    def cpu_seconds(self) -> float:
        """The time of processes that the training has taken so far, over all stops."""
        return self._before + time.process_time() - self._since

    def run(
        self,
        training: Training,
        *,
        warm_up: Callable[[Training], bool] | None = None,
        on_message: Callable[[str], None] | None = None,
    ) -> bool:
        """Train from where the checkpoints end, and save. False if a callback stopped it before the last epoch.

        A training that was killed at any moment and is run again ends with the same bits: parameters, chains and
        metrics. `warm_up` is called before the first update of all. `on_message` is told of damaged files.
        """
        found = self.folder.checkpoints.load(partial(check_state, training), on_damage=on_message)
        if found is not None:
            restore(training, *found)
        elif warm_up is not None and warm_up(training):
            self.save(training)
        training.run()
        self.save(training)
        return training.epoch >= training.epochs

    def on_start(self, training: Training) -> None:
        """Make the metrics those of the state that training starts from."""
        if workers.is_first():
            self.folder.write_metrics(training.history.records)
        self.n_messages = sum(len(record.get("messages", ())) for record in training.history.records)

    def on_update(self, training: Training) -> None:
        """Write a checkpoint within an epoch when it is time."""
        self.learning_rate = training.optimizer.param_groups[0]["lr"]
        if time.monotonic() - self.looked >= _LOOK:
            self.looked = time.monotonic()
            training.stop = training.stop or self.folder.asked_to_stop
        if training.has_seen_all:  # the end of the epoch comes next
            return
        wish = bool(self.updates and training.update % self.updates == 0) or self._waited(self.seconds)
        if training.division is None:
            if wish:
                self.save(training)
            return
        if training.division.save:  # somebody wished it before this update: all save after it
            self.save(training)
        elif wish:
            training.division.wish = True

    def on_epoch(self, training: Training, record: dict[str, Any]) -> None:
        """Write the metrics of the epoch, and a checkpoint."""
        record["learning_rate"] = self.learning_rate
        new = training.history.messages[self.n_messages :]
        if new:
            record["messages"] = new
        self.n_messages = len(training.history.messages)
        if workers.is_first():
            self.folder.append(METRICS, record)
        self._note_time(training)
        due = bool(self.updates) or self._waited(self.least)
        if due if training.division is None else training.division.agreed(due):
            self.save(training)

    def save(self, training: Training) -> None:
        """Write the training state and the model, unless this update is saved already."""
        if self.saved == (training.update, training.epoch):
            return
        state = snapshot(training)
        if workers.is_first():
            self.folder.checkpoints.save(*state)
            if self.keeps_model:
                self.folder.write_model(final_parameters(training))
        if training.position:
            self._note_time(training)
        self.last, self.saved = time.monotonic(), (training.update, training.epoch)

    def _waited(self, seconds: float) -> bool:
        return time.monotonic() - self.last >= seconds

    def _note_time(self, training: Training) -> None:
        if not workers.is_first():
            return
        now = {"time": time.time(), "cpu_seconds": self.cpu_seconds}
        self.folder.append(TIMING, {"epoch": training.epoch, "update": training.update, **now})


def final_parameters(training: Training) -> State:
    """Return the parameters to keep: the best where they are kept, their average if there is one, else the newest."""
    state = dict(training.model.state_dict())
    for monitor in training.monitors:
        if isinstance(monitor, KeepBest):
            state |= monitor.best
    for transform in training.transforms:
        if isinstance(transform, ParameterAverage):
            state |= transform.average
    for monitor in training.monitors:
        if isinstance(monitor, Patience):  # the best epoch's, averages included
            state |= monitor.best
    return state
