"""Checkpoints of a training that has no folder of its own kind: written now and then, taken up again exactly."""

from __future__ import annotations

import time
from collections.abc import Callable

from harmonium.learning import Callback, Training, restore, snapshot
from harmonium.runs.checkpoints import Checkpoints


class Keeper(Callback):
    """Writes the training state every `seconds`; `run` goes on from the newest that is whole, with the same bits.

    `cpu_seconds` counts the time of the process from the first start on, over all stops. `say` is told how it goes.
    """

    def __init__(
        self, checkpoints: Checkpoints, seconds: float = 60.0, *, say: Callable[[str], None] | None = None
    ) -> None:
        self.checkpoints, self.seconds, self.say = checkpoints, seconds, say or (lambda message: None)
        self.last, self._since, self._before = time.monotonic(), time.process_time(), 0.0

    @property
    def cpu_seconds(self) -> float:
        """The time of the process that the training took so far."""
        return self._before + time.process_time() - self._since

    def run(self, training: Training) -> bool:
        """Train to the last epoch from where the checkpoints end. False, and saved, if a callback stopped it before."""
        self.checkpoints.tidy()
        saved = self.checkpoints.load(on_damage=self.say)
        if saved is not None:
            restore(training, *saved)
            self._before = saved[1].get("cpu_seconds", 0.0)
        training.run()
        if training.epoch < training.epochs:
            self.save(training)
        return training.epoch >= training.epochs

    def on_update(self, training: Training) -> None:
        """Write the state when it is time."""
        if time.monotonic() - self.last >= self.seconds:
            self.save(training)
            passed = f"update {training.update:,}, {self.cpu_seconds:.0f} s of CPU"
            self.say(f"epoch {training.epoch}/{training.epochs}, {passed}")

    def save(self, training: Training) -> None:
        """Write the state."""
        tensors, values = snapshot(training)
        self.checkpoints.save(tensors, values | {"cpu_seconds": self.cpu_seconds})
        self.last = time.monotonic()
