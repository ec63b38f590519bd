"""The best parameters so far, by the validation data."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import nn

from harmonium.learning.history import Record
from harmonium.learning.monitors.base import Monitor
from harmonium.types import State

if TYPE_CHECKING:
    from harmonium.learning.training import Training


class KeepBest(Monitor):
    """Scores the validation data at the start and after each epoch, and keeps the parameters with the best score.

    `score(model, validation)` is better the larger it is: a mean log-likelihood. `best` are the parameters;
    `model.load_state_dict(keep.best)` puts them back. A run writes them as its model.
    """

    def __init__(self, score: Callable[[nn.Module, State], float]) -> None:
        self.score = score
        self.best: State = {}
        self.value = -math.inf

    def on_start(self, training: Training) -> None:
        """Score the start, unless a run goes on."""
        if not self.best:
            self._look(training)

    def __call__(self, training: Training) -> Record:
        """Return the score of this epoch and the best so far."""
        value = self._look(training)
        return {} if value is None else {"validation_log_likelihood": value, "best_log_likelihood": self.value}

    @torch.no_grad()
    def _look(self, training: Training) -> float | None:
        if training.validation is None:
            return None
        value = self.score(training.model, training.validation)
        if value > self.value or not self.best:
            self.value = value
            self.best = {name: p.detach().clone() for name, p in training.model.state_dict().items()}
        return value

    def state_dict(self) -> State:
        """Return the best parameters and their score."""
        return {"value": torch.tensor(self.value, dtype=torch.float64)} | {
            f"best.{name}": p for name, p in self.best.items()
        }

    def load_state_dict(self, state: State) -> None:
        """Take them up again."""
        self.value = state["value"].item()
        self.best = {name.removeprefix("best."): p.clone() for name, p in state.items() if name.startswith("best.")}
