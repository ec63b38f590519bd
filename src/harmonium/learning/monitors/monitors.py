"""What to watch while a Boltzmann machine learns."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from harmonium.learning.history import Record
from harmonium.models import BoltzmannMachine
from harmonium.samplers import effective_sample_size, split_r_hat
from harmonium.types import State
from harmonium.units import Bernoulli, Spin

if TYPE_CHECKING:
    from harmonium.learning.training import Training

_N_ROWS = 512


class Monitor(ABC):
    """Metrics at the end of each epoch; `on_update` may gather something on the way. Draws no random numbers."""

    def on_start(self, training: Training) -> None:  # noqa: B027  (a hook)
        """Be called before the first update."""

    def on_update(self, training: Training) -> None:  # noqa: B027  (a hook)
        """Look at an update."""

    @abstractmethod
    def __call__(self, training: Training) -> Record:
        """Return the metrics of this epoch."""

    def state_dict(self) -> State:
        """Return what must survive between epochs."""
        return {}

    def load_state_dict(self, state: State) -> None:  # noqa: B027  (a hook)
        """Take it up again."""


class Fit(Monitor):
    """How the model meets the data, on the last batch and up to 512 rows of the validation data.

    `reconstruction` is the mean squared error of a reconstruction, `free_energy` the mean over the batch, `contrast`
    the difference of the two phases, `free_energy_gap` training minus validation: far below zero means over-fitting.
    `pseudo_likelihood` is `Σ_i log p(x_i | x_rest)` of binary data, estimated from one unit a sample.
    """

    @torch.no_grad()
    def __call__(self, training: Training) -> Record:
        """Return the metrics."""
        model = training.model
        if not isinstance(model, BoltzmannMachine) or training.phases is None:
            return {}
        layer = model.data_layer
        x, negative = training.phases.positive[layer], training.phases.negative[layer]
        free, rebuilt = model.energy(x), model.mean(layer, training.phases.positive)
        record = {
            "reconstruction": _scalar((rebuilt - x).square().mean()),
            "free_energy": _scalar(free.mean()),
            "contrast": _scalar(free.mean() - model.energy(negative).mean()),
        }
        if isinstance(model.layer(layer), Bernoulli | Spin):
            record["pseudo_likelihood"] = _scalar(_pseudo_likelihood(model, x, free, training.epoch))
        if training.validation is not None:
            valid = training.validation[:_N_ROWS].to(x)
            record["validation_free_energy"] = _scalar(model.energy(valid).mean())
            record["free_energy_gap"] = record["free_energy"] - record["validation_free_energy"]
        return record


class HiddenUnits(Monitor):
    """Hidden units that never fire (mean below 1 % of the range on the whole batch) or are always on (above 99 %)."""

    @torch.no_grad()
    def __call__(self, training: Training) -> Record:
        """Return the counts."""
        model = training.model
        if not isinstance(model, BoltzmannMachine) or training.phases is None:
            return {}
        hidden = [name for name in model.units if name != model.data_layer]
        low, high = model.layer(hidden[0]).bounds() if hidden else (0.0, math.inf)
        if not math.isfinite(high - low):
            return {}
        units = model.layer(hidden[0])
        activity = (training.phases.positive[hidden[0]].flatten(end_dim=-len(units.shape) - 1) - low) / (high - low)
        return {
            "n_hidden": activity[0].numel(),
            "dead": int((activity.amax(0) < 0.01).sum()),
            "saturated": int((activity.amin(0) > 0.99).sum()),
            "activity": _scalar(activity.mean()),
        }


class Mixing(Monitor):
    """R-hat and effective sample size of persistent chains, followed by the sum of their visible units.

    Looks back over the last `n_draws` updates; the parameters move meanwhile, so this is a symptom, not a proof.
    """

    def __init__(self, n_draws: int = 100) -> None:
        self.n_draws = n_draws
        self.trace: list[Tensor] = []

    def on_update(self, training: Training) -> None:
        """Note where the chains are."""
        model = training.model
        if not isinstance(model, BoltzmannMachine) or training.phases is None:
            return
        if getattr(training.objective, "chains", None) is None:
            return
        negative = training.phases.negative[model.data_layer]
        self.trace.append(negative.flatten(1).sum(1))
        del self.trace[: -self.n_draws]

    def __call__(self, training: Training) -> Record:
        """Return R-hat and the effective sample size of the trace."""
        if len(self.trace) < 20:
            return {}
        draws = torch.stack(self.trace, dim=1)
        return {
            "r_hat": _scalar(split_r_hat(draws)),
            "ess": _scalar(effective_sample_size(draws)),
            "n_draws": len(self.trace),
        }

    def state_dict(self) -> State:
        """Return the trace."""
        return {"trace": torch.stack(self.trace)} if self.trace else {}

    def load_state_dict(self, state: State) -> None:
        """Take up the trace."""
        self.trace = list(state["trace"].unbind(0)) if "trace" in state else []


def default_monitors() -> list[Monitor]:
    """Return the monitors that `fit` uses unless told otherwise."""
    from harmonium.learning.monitors.depths import LayerFit  # it extends this module's Monitor

    return [Fit(), HiddenUnits(), Mixing(), LayerFit()]


def _pseudo_likelihood(model: BoltzmannMachine, x: Tensor, free: Tensor, epoch: int) -> Tensor:
    """Estimate `Σ_i log p(x_i | x_rest)`: n times `log σ(F(x with unit i flipped) - F(x))`, i walking over all."""
    units = model.layer(model.data_layer)
    rows = x.flatten(1).clone()
    n = rows.shape[1]
    chain = torch.arange(len(rows), device=x.device)
    site = (chain * 7919 + epoch * 104729) % n
    low, high = units.bounds()
    rows[chain, site] = low + high - rows[chain, site]
    return n * logsigmoid(model.energy(rows.reshape(x.shape)) - free).mean()


def _scalar(x: Tensor) -> float:
    return float(x.item())
