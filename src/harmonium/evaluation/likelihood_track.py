"""The log-likelihood while the model learns."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor

from harmonium.couplings import Bias
from harmonium.draws import draw_permutation
from harmonium.learning import Training
from harmonium.learning.history import Record
from harmonium.learning.monitors import Monitor
from harmonium.learning.state import part_of
from harmonium.learning.transforms import ParameterAverage
from harmonium.models import BoltzmannMachine
from harmonium.partition.bennett import bennett
from harmonium.partition.bounds import states_floor
from harmonium.samplers import Gibbs
from harmonium.samplers.resample import effective_size, resample
from harmonium.types import State

_WIDEST_LEG = 0.3
_LONGEST_LEG = 400
_THIN = 0.25  # weights that rest on a smaller share of the particles say little of their own error
_POPULATIONS = 4
_QUANTILE = 1.197  # of Student's t with 3 degrees of freedom, which 68.3 % lie within, as within 1 of a normal law


class LikelihoodTrack(Monitor):
    """A running log-likelihood with its error: annealed importance sampling along the path of the parameters.

    Before training `n_particles` are drawn from the machine without its couplings, whose Z is known. At the end of
    each epoch they are annealed over `n_bridges` steps from the parameters of the last epoch to the new ones, run for
    as many steps as make half a leg, and melted back again: two bounds of `log Z_new - log Z_old`, and Bennett's
    estimate between them. A leg whose bounds lie more than 0.3 nats apart, or whose weights rest on less than a quarter
    of the particles either way, is made anew with twice the steps, up to 400. Where the parameters jump and no short
    path can follow, its error says so.

    The error of a leg is the larger of Bennett's error and half the distance of the bounds, and of weights that still
    rest on n_up and n_down particles no less than `√(1/n_up + 1/n_down)`: two bounds that each rest on a particle or
    two agree by chance. The same particles walk all legs, and where they hold too much of a mode they do so for many
    epochs, which no leg by itself can show. So they are four populations that never mix: each follows log Z on its own,
    and the spread of the four is the error of all that they remember. The stated error is the root of the sum of
    squares of that and of all legs.

    Where a model swings from one mode to another, all four may have left a mode together that then comes back. So log Z
    is held against what the states at hand guarantee, rows of the epoch and what was drawn for them,
    `Z ≥ Σ_x e^{-F(x)}`: where they say more it is lifted to that, the gap is taken into the error, and the particles
    begin again at such states. Of a mode that none of these states is in nothing is known.

    With a `ParameterAverage` among the transforms the average is followed, the model that a run keeps: it moves
    smoothly, and 25 steps suffice for a machine of 784 × 500. Has its own random numbers, drawn from `seed`.
    """

    def __init__(self, n_particles: int = 100, n_bridges: int = 25, seed: int = 0) -> None:
        if n_particles < 2 * _POPULATIONS:
            raise ValueError(
                f"n_particles must be at least {2 * _POPULATIONS}, two in each of {_POPULATIONS} populations. Got "
                f"{n_particles}."
            )
        self.n_particles, self.n_bridges, self.seed = n_particles, n_bridges, seed
        self.generator = torch.Generator().manual_seed(seed)
        self.particles = torch.zeros(0)
        self.log_z, self._squares = 0.0, 0.0
        self._apart = torch.zeros(_POPULATIONS, dtype=torch.float64)  # log Z of each population, less the start's
        self.old: BoltzmannMachine | None = None
        self._saved: State = {}

    @torch.no_grad()
    def on_start(self, training: Training) -> None:
        """Draw the particles from the machine without its couplings: `log Z = Σ A(b)`."""
        model = training.model
        if self.old is not None or not isinstance(model, BoltzmannMachine) or not _closed(model):
            return
        self.old = copy.deepcopy(model)
        if self._saved:
            self.old.load_state_dict(self._saved)
            return
        for _, coupling in self.old.terms:
            if not isinstance(coupling, Bias):
                for parameter in coupling.parameters():
                    parameter.zero_()
        for name in self.old.layers:
            self.log_z += self.old.layer(name).log_partition(self.old.bias_field(name).double()).sum().item()
        self.particles = self.old.initial(self.n_particles, generator=self.generator)[self.old.data_layer]

    @torch.no_grad()
    def __call__(self, training: Training) -> Record:
        """Return the log-likelihood of rows of the epoch, of the validation data, and the error they share.

        Of data that hold values which the units do not take there is none.
        """
        if self.old is None or training.seen is None:
            return {}
        positive, negative, hidden = training.seen
        seen = {name: value for name, value in positive.items() if name not in hidden}
        if not all(bool(self.old.layer(name).in_support(value).all()) for name, value in seen.items()):
            return {}
        model = self._followed(training)
        self._walk(model)
        self._hold(model, positive, negative)
        record = {"log_z": self.log_z, "log_z_error": self.error}
        record |= self._mean("log_likelihood", model.energy(seen))
        if training.validation is not None and set(training.validation) == set(seen):
            record |= self._mean("validation_log_likelihood", model.energy(training.validation))
        return record

    def _mean(self, name: str, free: Tensor) -> Record:
        """Return the mean of `-F - log Z` with its standard error over the samples."""
        spread = (free.double().std() / math.sqrt(len(free))).item() if len(free) > 1 else 0.0
        return {name: -free.mean().item() - self.log_z, f"{name}_spread": spread}

    def _followed(self, training: Training) -> BoltzmannMachine:
        """Return a copy of the model, at the average of its parameters where there is one."""
        model = copy.deepcopy(training.model)
        for transform in training.transforms:
            if isinstance(transform, ParameterAverage) and transform.average:
                for name, parameter in model.named_parameters():
                    parameter.copy_(transform.average[name])
        return model  # type: ignore[return-value]

    def _walk(self, new: BoltzmannMachine) -> None:
        """Carry the particles from the old parameters to the new ones and take the leg into log Z."""
        old = self.old
        if old is None:
            return
        n_bridges = self.n_bridges
        while True:
            up, ends = self._anneal(self.particles, old, new, n_bridges)
            there = ends[self._resampled(up)]
            for _ in range(n_bridges // 2):
                there = self._moved(new, there)
            down, _ = self._anneal(there, new, old, n_bridges)
            width, size = abs(_log_mean(up) + _log_mean(down)), (effective_size(up), effective_size(down))
            thin = min(size) < _THIN * self.n_particles
            if (width <= _WIDEST_LEG and not thin) or n_bridges >= _LONGEST_LEG:
                break
            n_bridges *= 2
        value, error = bennett(up, down)
        self.log_z += value
        self._squares += max(error, width / 2, math.sqrt(1 / size[0] + 1 / size[1]) if thin else 0.0) ** 2
        pairs = zip(up.tensor_split(_POPULATIONS), down.tensor_split(_POPULATIONS), strict=True)
        self._apart += torch.tensor([bennett(*pair)[0] for pair in pairs], dtype=torch.float64)
        self.particles, self.old = there, new

    def _hold(self, model: BoltzmannMachine, positive: State, negative: State) -> None:
        """Lift log Z to the guaranteed bound of the states at hand, if it lies below, and say so in the error."""
        layer = model.data_layer
        units = model.layer(layer)
        pool = [x[layer] for x in (positive, negative) if layer in x and bool(units.in_support(x[layer]).all())]
        if not pool:
            return
        states = torch.cat([*pool, self.particles.to(pool[0])])
        gap = states_floor(model, [{layer: states}], generator=self.generator) - self.log_z
        if gap <= 0:
            return
        if gap > self.error:  # the particles miss a mode
            taken = resample(-model.energy({layer: states}).double(), generator=self.generator)
            some = draw_permutation(len(taken), generator=self.generator)[: self.n_particles]
            self.particles = states[taken[some]]
            for _ in range(self.n_bridges):
                self.particles = self._moved(model, self.particles)
        self.log_z += gap
        self._squares += gap**2

    @property
    def error(self) -> float:
        """The error of log Z: of what the populations have come apart by, and of all legs."""
        spread = _QUANTILE * self._apart.std().item() / math.sqrt(_POPULATIONS)
        return math.hypot(spread, math.sqrt(self._squares))

    def _resampled(self, log_weights: Tensor) -> Tensor:
        """Return the numbers of as many particles, drawn in proportion to their weights in each population."""
        everyone = torch.arange(len(log_weights), device=log_weights.device).tensor_split(_POPULATIONS)
        return torch.cat([some[resample(log_weights[some], generator=self.generator)] for some in everyone])

    def _anneal(
        self, x: Tensor, start: BoltzmannMachine, end: BoltzmannMachine, n_bridges: int
    ) -> tuple[Tensor, Tensor]:
        """Return the log weights `Σ F_k(x_k) - F_{k+1}(x_k)` of particles led along a straight line, and their ends."""
        low, high = copy.deepcopy(start), copy.deepcopy(start)
        total = torch.zeros(len(x), dtype=torch.float64, device=x.device)
        for k in range(1, n_bridges + 1):
            for here, a, b in zip(high.parameters(), start.parameters(), end.parameters(), strict=True):
                torch.lerp(a, b, k / n_bridges, out=here)
            total += (low.energy(x) - high.energy(x)).double()
            x = self._moved(high, x)
            low, high = high, low
        return total, x

    def _moved(self, model: BoltzmannMachine, x: Tensor) -> Tensor:
        state = Gibbs().init(model, x, generator=self.generator)
        Gibbs().draw_block(model, (model.data_layer,), state, generator=self.generator)
        return state[model.data_layer]

    def state_dict(self) -> State:
        """Return the particles, the old parameters, the numbers and the random state."""
        if self.old is None:
            return {}
        numbers = torch.tensor([self.log_z, self._squares, *self._apart.tolist()], dtype=torch.float64)
        tensors = {"numbers": numbers, "particles": self.particles, "random": self.generator.get_state()}
        return tensors | {f"old.{name}": value for name, value in self.old.state_dict().items()}

    def load_state_dict(self, state: State) -> None:
        """Take them up again; the old parameters when training starts, which knows the machine."""
        if not state:
            return
        self.log_z, self._squares = state["numbers"][:2].tolist()
        self._apart = state["numbers"][2:].clone()
        self.particles = state["particles"].clone()
        self.generator.set_state(state["random"])
        self.old, self._saved = None, part_of(state, "old.")


def _closed(model: BoltzmannMachine) -> bool:
    """Return whether the free energy of data is known in closed form: no coupling ties two hidden layers."""
    hidden = [name for name in model.layers if name != model.data_layer]
    return not model.given and not any(model.ties(a, b) for a in hidden for b in hidden)


def _log_mean(log_weights: Tensor) -> float:
    return (log_weights.logsumexp(0) - math.log(len(log_weights))).item()
