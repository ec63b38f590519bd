"""The best epoch by the validation data, and an end when none is better."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from harmonium.learning.history import Record
from harmonium.learning.monitors.base import Monitor
from harmonium.learning.state import part_of
from harmonium.learning.transforms import ParameterAverage
from harmonium.types import State

if TYPE_CHECKING:
    from harmonium.learning.training import Training


class Patience(Monitor):
    """Keeps the parameters of the best epoch, and stops after `n_epochs` without a better one.

    `monitor` measures `metric` at the end of each epoch, which is better the larger it is. `best` are the parameters of
    the best epoch, averaged where there is a `ParameterAverage`: those that the metric is of. A run writes them as its
    model. All of it is checkpointed, so that a run that goes on after a stop ends with the same bits.
    """

    def __init__(self, monitor: Monitor, n_epochs: int, metric: str = "validation_log_likelihood") -> None:
        if n_epochs < 1:
            raise ValueError(f"Patience must be at least 1 epoch. Got {n_epochs}.")
        self.monitor, self.n_epochs, self.metric = monitor, n_epochs, metric
        self.best: State = {}
        self.value, self.epoch = -math.inf, 0

    def on_start(self, training: Training) -> None:
        """Let the monitor begin; a run whose patience had ended has no more to do."""
        if training.validation is None:
            raise ValueError("Patience looks at validation data, and there are none. Leave it out, or hold some out.")
        self.monitor.on_start(training)
        training.stop = training.stop or self._over(training.epoch)

    def on_update(self, training: Training) -> None:
        """Let the monitor look at an update."""
        self.monitor.on_update(training)

    def __call__(self, training: Training) -> Record:
        """Return what the monitor measured, with the best epoch so far, and stop when it lies too far back."""
        record = self.monitor(training)
        if self.metric not in record:
            raise ValueError(
                f"Patience looks at {self.metric!r}, which {type(self.monitor).__name__} does not measure for this "
                "model and these data. Leave it out."
            )
        if record[self.metric] > self.value or not self.best:
            self.value, self.epoch = record[self.metric], training.epoch
            self.best = {name: value.detach().clone() for name, value in kept(training).items()}
        training.stop = training.stop or self._over(training.epoch)
        return record | {"best_log_likelihood": self.value, "best_epoch": self.epoch}

    def state_dict(self) -> State:
        """Return the best parameters, when and how good they were, and the state of the monitor."""
        state = {f"monitor.{name}": value for name, value in self.monitor.state_dict().items()}
        if self.best:
            state |= {"best": torch.tensor([self.value, self.epoch], dtype=torch.float64)}
            state |= {f"best.{name}": value for name, value in self.best.items()}
        return state

    def load_state_dict(self, state: State) -> None:
        """Take them up again."""
        self.monitor.load_state_dict(part_of(state, "monitor."))
        if "best" in state:
            self.value, epoch = state["best"].tolist()
            self.epoch = int(epoch)
            self.best = {name: value.clone() for name, value in part_of(state, "best.").items()}

    def _over(self, epoch: int) -> bool:
        return epoch - self.epoch >= self.n_epochs


def kept(training: Training) -> State:
    """Return the parameters as a run keeps them: the averages where there are any."""
    state = dict(training.model.state_dict())
    for transform in training.transforms:
        if isinstance(transform, ParameterAverage):
            state |= transform.average
    return state
