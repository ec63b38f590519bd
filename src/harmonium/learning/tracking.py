"""The log-likelihood while the model learns."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from harmonium.learning.history import Record
from harmonium.learning.monitors import Monitor
from harmonium.models import BoltzmannMachine
from harmonium.samplers import Gibbs
from harmonium.types import State, draw_uniform

if TYPE_CHECKING:
    from harmonium.learning.training import Training

_N_BRIDGE = 200
_LARGEST_ERROR = 1.0


class LikelihoodTrack(Monitor):
    """A running log-likelihood with its error: annealed importance sampling along the path of the parameters.

    `n_particles` chains are drawn from the model without its couplings, whose Z is known, and annealed to the model at
    hand. Every `every` updates their weights gain `F_old(x) - F_new(x)` and they make a Gibbs step, so that
    `log Z ← log Z + log mean w`; they are resampled when the weights grow uneven. The error adds the variances of the
    factors. Cheap: two free energies of a few chains now and then. Has its own random numbers, drawn from `seed`.

    Where the parameters move faster than the particles can follow, their weights mean nothing. They are lost when
    their mean free energy and that of the negative phase differ by more than a standard deviation, or when the error
    has grown beyond a nat; they are then annealed anew. `restarts` counts it. A short annealing of a large trained
    machine flatters it by some nats, which its error does not show: compare models with `harmonium.log_likelihood`.
    """

    def __init__(self, n_particles: int = 128, every: int = 20, seed: int = 0) -> None:
        self.n_particles, self.every, self.seed = n_particles, every, seed
        self.generator = torch.Generator().manual_seed(seed)
        self.state: State = {}
        self.log_weights = torch.zeros(n_particles, dtype=torch.float64)
        self.log_z, self.variance = 0.0, 0.0
        self.restarts = 0
        self.old: BoltzmannMachine | None = None

    @torch.no_grad()
    def on_update(self, training: Training) -> None:
        """Follow the parameters."""
        model = training.model
        if not isinstance(model, BoltzmannMachine):
            return
        if self.old is None:
            self._start(model)
        elif training.update % self.every == 0:
            self._follow(model)

    def _start(self, model: BoltzmannMachine) -> None:
        reference = {name: model.bias_field(name) for name in model.units}
        parts = (model.layer(name).log_partition(field.double()).sum() for name, field in reference.items())
        self.log_z, self.variance = float(sum(part.item() for part in parts)), 0.0
        self.log_weights.zero_()
        self.state = model.initial(self.n_particles, generator=self.generator)
        layer = model.data_layer
        for i in range(_N_BRIDGE):
            low, high = (model.tempered(b / _N_BRIDGE, reference) for b in (i, i + 1))
            x = self.state[layer]
            self.log_weights += (low.energy(x) - high.energy(x)).double()
            self.state, _ = Gibbs().step(high, self._redrawn(high), generator=self.generator)
        self._settle()
        self.old = copy.deepcopy(model)

    def _follow(self, model: BoltzmannMachine) -> None:
        if self.old is None:
            return
        x = self.state[model.data_layer]
        self.log_weights += (self.old.energy(x) - model.energy(x)).double()
        self.state, _ = Gibbs().step(model, self._redrawn(model), generator=self.generator)
        for old, new in zip(self.old.parameters(), model.parameters(), strict=True):
            old.copy_(new)
        share = self.log_weights.softmax(0)
        if 1 / share.square().sum() < self.n_particles / 2:
            self._settle()

    def _lost(self, model: BoltzmannMachine, negative: Tensor) -> bool:
        ours, theirs = model.energy(self.state[model.data_layer]), model.energy(negative)
        gap = (ours.mean() - theirs.mean()).abs()
        return bool(gap > torch.stack([ours.std(), theirs.std()]).amax() + 1.0)

    def _redrawn(self, model: BoltzmannMachine) -> State:
        # The weights belong to the data layer alone; the hidden layers are drawn given it before the step.
        return Gibbs().init(model, self.state[model.data_layer], generator=self.generator)

    def _settle(self) -> None:
        """Take the weights into log Z and resample the particles."""
        value, variance = self._increment()
        self.log_z += value
        self.variance += variance
        share = self.log_weights.softmax(0).cumsum(0)
        n = self.n_particles
        comb = (torch.arange(n, dtype=share.dtype) + draw_uniform(share[:1], generator=self.generator)) / n
        index = torch.searchsorted(share, comb).clamp_max(n - 1)
        self.state = {name: values[index.to(values.device)] for name, values in self.state.items()}
        self.log_weights.zero_()

    def _increment(self) -> tuple[float, float]:
        n = self.n_particles
        value = (self.log_weights.logsumexp(0) - math.log(n)).item()
        share = self.log_weights.softmax(0)
        return value, ((n * share - 1).square().mean() / n).item()

    @torch.no_grad()
    def __call__(self, training: Training) -> Record:
        """Return the log-likelihood of the last batch, of the validation data, and the error they share."""
        model = training.model
        if not isinstance(model, BoltzmannMachine) or self.old is None or training.phases is None:
            return {}
        error = math.sqrt(self.variance + self._increment()[1])
        if error > _LARGEST_ERROR or self._lost(model, training.phases.negative[model.data_layer]):
            self.restarts += 1
            self._start(model)
        else:
            self._follow(model)
        value, variance = self._increment()
        log_z = self.log_z + value
        x = training.phases.positive[model.data_layer]
        record = {
            "log_z": log_z,
            "log_z_error": math.sqrt(self.variance + variance),
            "restarts": self.restarts,
            "log_likelihood": -model.energy(x).mean().item() - log_z,
        }
        if training.validation is not None:
            free = model.energy(training.validation[:2048].to(x)).mean().item()
            record["validation_log_likelihood"] = -free - log_z
        return record

    def state_dict(self) -> State:
        """Return the particles, their weights, the old parameters and the random state."""
        if self.old is None:
            return {}
        numbers = torch.tensor([self.log_z, self.variance, self.restarts], dtype=torch.float64)
        tensors = {"numbers": numbers, "log_weights": self.log_weights, "random": self.generator.get_state()}
        tensors |= {f"state.{name}": value for name, value in self.state.items()}
        return tensors | {f"old.{name}": value for name, value in self.old.state_dict().items()}

    def load_state_dict(self, state: State, model: BoltzmannMachine | None = None) -> None:
        """Take them up again; `model` gives the shape of the old machine."""
        if not state or model is None:
            return
        self.log_z, self.variance, restarts = state["numbers"].tolist()
        self.restarts = int(restarts)
        self.log_weights = state["log_weights"].clone()
        self.generator.set_state(state["random"])
        self.state = _part(state, "state.")
        self.old = copy.deepcopy(model)
        self.old.load_state_dict(_part(state, "old."))


def _part(state: State, prefix: str) -> State:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
