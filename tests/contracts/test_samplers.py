"""No drift: chains that start at the exact law stay there, and wrong kernels do not.

The false-alarm rate is at most 1e-6 for each comparison, about 1e-3 for all of this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from harmonium.draws import draw_normal, draw_uniform
from harmonium.models import RBM, BoltzmannMachine
from harmonium.samplers import MALA, Gibbs, Langevin, Metropolis, ParallelTempering, Sampler
from harmonium.samplers.base import Info
from harmonium.samplers.gradient import energy_and_slope
from harmonium.testing import ALL_MACHINES, ALL_SAMPLERS, ContractError, ExactLaw, check_no_drift, scatter, tiny_rbm
from harmonium.types import EnergyModel, State
from harmonium.units import Bernoulli, Gaussian, Mixed

NAN = float("nan")


@pytest.mark.parametrize("name", ALL_MACHINES)
def test_gibbs_on_every_machine(name: str, generator: torch.Generator) -> None:
    check_no_drift(Gibbs(), ALL_MACHINES[name](), n_chains=5000, generator=generator)


METROPOLIS = [
    "Bernoulli-Bernoulli",
    "Spin-Gaussian",
    "Gaussian-Bernoulli",
    "Gaussian-Categorical",
    "Categorical-Spin",
    "Binomial-Bernoulli",
    "Multinary-Poisson",
    "NReLU-Bernoulli",
    "Poisson-Spin",
    "Boltzmann",
    "Potts",
    "pooled",
    "tempered",
    "tempered Gaussian",
]


@pytest.mark.parametrize("step_size", [0.5, 2.0])
@pytest.mark.parametrize("name", METROPOLIS)
def test_metropolis(name: str, step_size: float, generator: torch.Generator) -> None:
    check_no_drift(Metropolis(step_size=step_size), ALL_MACHINES[name](), n_chains=5000, generator=generator)


@pytest.mark.parametrize("step_size", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("name", ["Gaussian-Bernoulli", "Gaussian-Categorical", "tempered Gaussian"])
def test_mala(name: str, step_size: float, generator: torch.Generator) -> None:
    check_no_drift(MALA(step_size=step_size), ALL_MACHINES[name](), n_chains=10000, generator=generator)


TEMPERED = ["Bernoulli-Bernoulli", "Gaussian-Bernoulli", "Categorical-Gaussian", "Boltzmann", "Potts", "deep", "gated"]


@pytest.mark.parametrize("name", TEMPERED)
def test_parallel_tempering_at_every_temperature(name: str, generator: torch.Generator) -> None:
    sampler = ParallelTempering(betas=(0.0, 0.4, 0.7, 1.0))
    check_no_drift(sampler, ALL_MACHINES[name](), n_chains=5000, generator=generator)


@pytest.mark.parametrize(
    ("inner", "name"),
    [
        (Metropolis(), "Bernoulli-Spin"),
        (Metropolis(), "Boltzmann"),
        (Metropolis(step_size=1.0), "Gaussian-Bernoulli"),
        (MALA(step_size=0.4), "Gaussian-Bernoulli"),
    ],
)
def test_parallel_tempering_of_other_samplers(inner: Sampler, name: str, generator: torch.Generator) -> None:
    sampler = ParallelTempering(inner=inner, betas=(0.1, 0.5, 1.0))
    check_no_drift(sampler, ALL_MACHINES[name](), n_chains=5000, generator=generator)


def test_parallel_tempering_with_a_reference(generator: torch.Generator) -> None:
    machine = tiny_rbm("Bernoulli", "Gaussian")
    reference = torch.tensor([1.0, -1.0, 0.5, 0.0], dtype=torch.float64)
    check_no_drift(ParallelTempering(betas=(0.0, 0.6, 1.0), reference=reference), machine, generator=generator)


GIVEN = [
    (Gibbs(), "Bernoulli-Spin", [1.0, NAN, NAN, 0.0]),
    (Gibbs(), "Boltzmann", [NAN, -1.0, NAN, NAN]),
    (Gibbs(), "deep", [NAN, 1.0, NAN]),
    (Gibbs(), "Bernoulli-Gaussian", [NAN, NAN, NAN, 1.0]),
    (Metropolis(), "Bernoulli-Bernoulli", [NAN, NAN, NAN, 1.0]),
    (Metropolis(), "Boltzmann", [NAN, -1.0, NAN, NAN]),
    (ParallelTempering(betas=(0.0, 0.5, 1.0)), "Bernoulli-Spin", [1.0, NAN, NAN, NAN]),
]


@pytest.mark.parametrize(("sampler", "name", "given"), GIVEN, ids=lambda value: str(value)[:20])
def test_conditional_law(sampler: Sampler, name: str, given: list[float], generator: torch.Generator) -> None:
    values = torch.tensor(given, dtype=torch.float64)
    check_no_drift(sampler, ALL_MACHINES[name](), given=values, n_chains=10000, generator=generator)


def test_finite_parts_side_by_side(generator: torch.Generator) -> None:
    """A mixed layer tied to nothing else: every part is drawn from its own law."""
    machine = RBM(Mixed(Bernoulli(2), Bernoulli(2)), Bernoulli(3)).double()
    check_no_drift(Gibbs(), machine, n_chains=5000, generator=generator)


@pytest.mark.parametrize("make", ALL_SAMPLERS)
def test_every_exact_sampler_has_a_machine(make: Callable[[], Sampler], generator: torch.Generator) -> None:
    sampler = make()
    if sampler.exact:
        machine = tiny_rbm("Gaussian", "Bernoulli", generator=generator)
        check_no_drift(sampler, machine, n_chains=5000, steps=(1, 4), generator=generator)
    else:
        assert isinstance(sampler, Langevin)


# --- negative controls ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Threshold(Gibbs):
    """A mean-field threshold where a draw should be."""

    def step(self, model: EnergyModel, state: State, *, generator: torch.Generator | None = None) -> tuple[State, Info]:
        assert isinstance(model, BoltzmannMachine)
        state = dict(state)
        for layer in model.layers:
            state[layer] = model.layer(layer).mode(model.field(layer, state))
        return state, {}


@dataclass(frozen=True)
class Simultaneous(Gibbs):
    """All sites of a layer tied to itself at once."""

    def step(self, model: EnergyModel, state: State, *, generator: torch.Generator | None = None) -> tuple[State, Info]:
        assert isinstance(model, BoltzmannMachine)
        return {name: model.sample(name, state, generator=generator) for name in model.layers}, {}


@dataclass(frozen=True)
class AcceptsAlways(Metropolis):
    def step(self, model: EnergyModel, state: State, *, generator: torch.Generator | None = None) -> tuple[State, Info]:
        assert isinstance(model, BoltzmannMachine)
        x = self._propose(model, state[model.data_layer], generator)
        return {model.data_layer: x, "energy": model.energy(x)}, {}


@dataclass(frozen=True)
class LectureNoteSlip(Metropolis):
    """The rule as the notes have it: a worse proposal is *refused* with probability exp(F(x) - F(x'))."""

    def step(self, model: EnergyModel, state: State, *, generator: torch.Generator | None = None) -> tuple[State, Info]:
        assert isinstance(model, BoltzmannMachine)
        x, energy = state[model.data_layer], state["energy"]
        new = self._propose(model, x, generator)
        new_energy = model.energy(new)
        kept = (draw_uniform(energy, generator=generator).log() < energy - new_energy) & (new_energy > energy)
        return {
            model.data_layer: torch.where(kept[:, None], x, new),
            "energy": torch.where(kept, energy, new_energy),
        }, {}


@dataclass(frozen=True)
class Unadjusted(Langevin):
    """Langevin dynamics that claims to be exact, with a large step."""


@dataclass(frozen=True)
class HalfAdjusted(MALA):
    """The rule of Metropolis where that of Metropolis and Hastings is needed."""

    def step(self, model: EnergyModel, state: State, *, generator: torch.Generator | None = None) -> tuple[State, Info]:
        assert isinstance(model, BoltzmannMachine)
        x, energy, slope = state[model.data_layer], state["energy"], state["slope"]
        new = x - self.step_size * slope + math.sqrt(2 * self.step_size) * draw_normal(x, generator=generator)
        new_energy, new_slope = energy_and_slope(model, new)
        accepted = draw_uniform(energy, generator=generator).log() < energy - new_energy
        return {
            model.data_layer: torch.where(accepted[:, None], new, x),
            "energy": torch.where(accepted, new_energy, energy),
            "slope": torch.where(accepted[:, None], new_slope, slope),
        }, {}


@dataclass(frozen=True)
class TradesAlways(ParallelTempering):
    def step(self, model: EnergyModel, state: State, *, generator: torch.Generator | None = None) -> tuple[State, Info]:
        state, info = super().step(model, state, generator=generator)
        return {name: value.flip(0) for name, value in state.items()}, info


class SloppyRBM(RBM):
    """A machine that draws its visible layer under too weak a field, with the true Gibbs sampler."""

    def field(self, layer: str, state: State) -> Tensor:
        return super().field(layer, state) * (0.3 if layer == "visible" else 1.0)


WRONG = [
    (Threshold(), "Bernoulli-Bernoulli"),
    (Simultaneous(), "Boltzmann"),
    (AcceptsAlways(), "Bernoulli-Bernoulli"),
    (AcceptsAlways(step_size=0.5), "Gaussian-Bernoulli"),
    (LectureNoteSlip(), "Bernoulli-Bernoulli"),
    (LectureNoteSlip(), "Boltzmann"),
    (LectureNoteSlip(step_size=0.5), "Gaussian-Bernoulli"),
    (Unadjusted(step_size=0.5), "Gaussian-Bernoulli"),
    (HalfAdjusted(step_size=0.5), "Gaussian-Bernoulli"),
    (TradesAlways(betas=(0.0, 1.0)), "Bernoulli-Bernoulli"),
]


@pytest.mark.parametrize(("sampler", "name"), WRONG, ids=lambda value: type(value).__name__)
def test_wrong_kernel_fails(sampler: Sampler, name: str, generator: torch.Generator) -> None:
    with pytest.raises(ContractError, match="drifted off the law"):
        check_no_drift(sampler, ALL_MACHINES[name](), generator=generator)


def test_wrong_conditional_fails(generator: torch.Generator) -> None:
    machine = scatter(SloppyRBM(Bernoulli(4), Bernoulli(3)), scale=1.0, generator=generator)
    with pytest.raises(ContractError, match="drifted off the law"):
        check_no_drift(Gibbs(), machine, generator=generator)


def test_clamp_that_is_ignored_fails(generator: torch.Generator) -> None:
    """With the clamp lifted, chains leave the conditional law."""
    machine = tiny_rbm("Bernoulli", "Spin")
    law = ExactLaw(machine, torch.tensor([1.0, NAN, NAN, NAN], dtype=torch.float64))
    state = law.draw(2000, generator=generator)
    state, _ = Gibbs().step(machine, state, generator=generator)
    frequency, probability = law.frequencies(state, law.layers)
    assert (frequency - probability).abs().sum() / 2 > 0.3


def test_too_few_states_are_refused() -> None:
    with pytest.raises(ValueError, match="too few states to tell drift from noise"):
        check_no_drift(Gibbs(), RBM(Bernoulli(1), Gaussian(1)).double())


def test_too_many_states_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 4096 states"):
        ExactLaw(RBM(Bernoulli(10), Bernoulli(10)))
