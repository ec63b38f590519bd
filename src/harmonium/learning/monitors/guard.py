"""A guard that brings a diverging training back."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import torch

from harmonium.draws import draw_integers
from harmonium.learning.diverged import TrainingDiverged
from harmonium.learning.history import Record
from harmonium.learning.monitors.base import Monitor
from harmonium.learning.monitors.health import HealthWarning
from harmonium.learning.state import learned, part_of, restore_learned
from harmonium.models.layers import data_layer
from harmonium.types import State

if TYPE_CHECKING:
    from harmonium.learning.training import Training

_MEMORY, _WARM_UP = 0.9, 20


class Guard(Monitor):
    """Watches a neural energy learn; when it diverges, goes back to the last good state and goes on more carefully.

    Divergence is any of
    - a loss, gradient or parameter that is not finite;
    - an energy gap `F(data) - F(samples)`, averaged over about ten updates, beyond ± `largest_gap` nats (one for each
      coordinate of the data, and at least 50, unless given);
    - a gradient more than `largest_jump` times as long as it was on average;
    - a share of saturated chains, all of their coordinates at the edge of the box, above `largest_saturation`.

    The guard then restores parameters, optimizer, chains and averages from the state before last of those it keeps
    every `every` updates, draws a new seed, multiplies the learning rate by `slower` and the number of steps of the
    chains by `longer`, up to `longest` times those of the beginning, says so in a `HealthWarning` and in the messages
    of the history, and training goes on with the next batch. After `n_tries` returns it gives up with
    `TrainingDiverged`, the model at its last good state. The records of the epochs count the returns as `rollbacks`.

    A monitor: `fit(..., monitors=[Guard()])`. The states that it keeps are part of a checkpoint: a run that is resumed
    returns to the same ones.
    """

    def __init__(
        self,
        *,
        every: int = 50,
        n_tries: int = 10,
        slower: float = 0.3,
        longer: float = 1.5,
        longest: float = 4.0,
        largest_gap: float | None = None,
        largest_jump: float = 100.0,
        largest_saturation: float = 0.9,
    ) -> None:
        if every < 1 or n_tries < 0 or not 0 < slower <= 1 or not longer >= 1:
            raise ValueError(
                "`every` must be at least 1, `n_tries` at least 0, `slower` in (0, 1] and `longer` at least 1. "
                f"Got every={every}, n_tries={n_tries}, slower={slower}, longer={longer}."
            )
        self.every, self.n_tries = every, n_tries
        self.slower, self.longer, self.longest = slower, longer, longest
        self.largest_gap, self.largest_jump, self.largest_saturation = largest_gap, largest_jump, largest_saturation
        self.rollbacks = 0
        self.gap, self.usual_gradient, self.n_seen = 0.0, 0.0, 0
        self.gradient_norm, self.saturation = 0.0, 0.0
        self._good: list[State] = []
        self._first_steps = 0

    def on_start(self, training: Training) -> None:
        """Keep the state before the first update, unless a checkpoint brought some."""
        if not self._good:
            self._keep(training)

    def on_update(self, training: Training) -> None:
        """Look at an update: keep its state now and then, return to an older one if it is bad."""
        trouble = self._trouble(training)
        if trouble:
            self.recover(training, trouble)
        elif training.update - int(self._good[-1]["update"]) >= self.every:
            self._keep(training)

    def recover(self, training: Training, trouble: str) -> bool:
        """Return to the last good state and go on more carefully, or give up."""
        good = self._good[0]
        back_at = int(good["update"])
        rates = [group["lr"] for group in training.optimizer.param_groups]
        n_steps = training.objective.n_steps
        restore_learned(training, good)
        if self.rollbacks >= self.n_tries:
            raise TrainingDiverged(
                f"Training diverged again after {self.rollbacks} returns to a good state ({trouble}). The model is at "
                f"the state of update {back_at}. Start with a lower learning rate or more steps of the chains, add "
                "input noise or an energy penalty, use spectral normalization, or allow more tries (n_tries)."
            )
        self.rollbacks += 1
        del self._good[1:]
        self.gap, self.n_seen = 0.0, 0
        rate, n_steps = self._more_careful(training, rates, n_steps)
        seed = self._new_seed(training)
        text = (
            f"Training diverged at update {training.update}: {trouble}. Back to the state of update {back_at} with "
            f"{'the seed ' + str(seed) if seed is not None else 'other random numbers'}, the learning rate {rate:.3g}"
            + (f" and {n_steps} steps of the chains" if n_steps else "")
            + f" (return {self.rollbacks} of at most {self.n_tries})."
        )
        training.history.messages.append(text)
        warnings.warn(text, HealthWarning, stacklevel=2)
        return True

    def __call__(self, training: Training) -> Record:
        """Return the count of returns and what the guard watches."""
        record: Record = {"rollbacks": self.rollbacks, "gradient_norm": self.gradient_norm}
        metrics = training.measured
        if "generation_loss" in metrics:
            record["energy_gap"] = self.gap
        if "saturation" in metrics:
            record["saturation"] = self.saturation
        return record

    @torch.no_grad()
    def _trouble(self, training: Training) -> str:
        """Return what is wrong in words, or nothing."""
        parameters = [p for p in training.model.parameters() if p.requires_grad]
        slopes = [p.grad for p in parameters if p.grad is not None]
        norms = torch._foreach_norm([*slopes, *parameters])
        norm, size = (torch.stack(part).norm().item() for part in (norms[: len(slopes)], norms[len(slopes) :]))
        metrics = training.measured
        gap, self.saturation = metrics.get("generation_loss", 0.0), metrics.get("saturation", 0.0)
        if not all(map(math.isfinite, (norm, size, *metrics.values()))):
            return "a loss, gradient or parameter is not finite"
        self.gap = _MEMORY * self.gap + (1 - _MEMORY) * gap
        self.gradient_norm = norm
        limit = self._gap_limit(training)
        if abs(self.gap) > limit:
            return f"the energy gap between data and samples is {self.gap:.3g} nats, more than {limit:.3g}"
        if self.n_seen >= _WARM_UP and norm > self.largest_jump * self.usual_gradient:
            return f"the gradient is {norm:.3g} long, {norm / self.usual_gradient:.0f} times as long as usual"
        if self.saturation > self.largest_saturation:
            return f"{self.saturation:.0%} of the chains stand in a corner of the box"
        self.n_seen += 1
        self.usual_gradient += (norm - self.usual_gradient) / min(self.n_seen, 100)
        return ""

    def _gap_limit(self, training: Training) -> float:
        if self.largest_gap is not None:
            return self.largest_gap
        x = training.batch[data_layer(training.model)]
        return max(50.0, float(x[0].numel()))

    def _keep(self, training: Training) -> None:
        self._first_steps = self._first_steps or (training.objective.n_steps or 0)
        self._good = [*self._good[-1:], learned(training, copy=True)]

    def _more_careful(self, training: Training, rates: list[float], n_steps: int | None) -> tuple[float, int | None]:
        """Lower the rates and add steps, from where they were when training diverged."""
        for group, rate in zip(training.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * self.slower
        if training.schedule is not None:
            training.schedule.base_lrs = [rate * self.slower for rate in training.schedule.base_lrs]
        if n_steps is not None:
            most = max(n_steps, math.ceil(self.longest * self._first_steps))
            n_steps = training.objective.n_steps = min(most, math.ceil(n_steps * self.longer))
        return rates[0] * self.slower, n_steps

    def _new_seed(self, training: Training) -> int | None:
        if training.generator is None:
            return None
        seed = int(draw_integers(2**31, (1,), generator=training.generator, device=training.generator.device))
        training.generator.manual_seed(seed)
        return seed

    def state_dict(self) -> State:
        """Return the counts, the averages and the states to return to."""
        counts = [self.rollbacks, self.n_seen, self._first_steps]
        averages = [self.gap, self.usual_gradient, self.gradient_norm, self.saturation]
        state: State = {"numbers": torch.tensor([*counts, *averages], dtype=torch.float64)}
        for i, good in enumerate(self._good):
            state |= {f"good.{i}.{name}": value for name, value in good.items()}
        return state

    def load_state_dict(self, state: State) -> None:
        """Take them up again."""
        if "numbers" in state:
            *counts, self.gap, self.usual_gradient, self.gradient_norm, self.saturation = state["numbers"].tolist()
            self.rollbacks, self.n_seen, self._first_steps = map(int, counts)
        parts = (part_of(state, f"good.{i}.") for i in range(2))
        self._good = [part for part in parts if part]
