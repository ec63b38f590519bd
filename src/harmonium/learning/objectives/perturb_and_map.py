"""Perturb-and-MAP: the modes of perturbed energies in place of samples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce

import torch
from torch import Tensor, nn

from harmonium.draws import draw_uniform
from harmonium.learning.objectives.base import Case
from harmonium.learning.objectives.contrastive import Contrastive, can_divide, draw_exactly, small_machine
from harmonium.models import BoltzmannMachine
from harmonium.models.enumeration import counted_layers
from harmonium.models.summation import configurations
from harmonium.types import EnergyModel, Filled, State
from harmonium.units import Units

MAX_STATES = 2**12
"""The most states that are gone through to find a mode."""


@dataclass
class PerturbAndMAP(Contrastive):
    """`F(x⁺) - E(x⁻)` with x⁻ the mode of `-E(x) + Σ_i γ_i(x_i)`, a Gumbel number γ_i(s) for each state s of each unit.

    Papandreou and Yuille (2011), perturbations of one unit each. Its gradient is that of
    `F(x⁺) + E_γ max_x [-E(x) + Σ_i γ_i(x_i)]`, which bounds `-log p(x⁺)` from above (Hazan and Jaakkola 2012), γ less
    its mean, Euler's constant. **Not consistent**: the modes follow the law of the machine only where its units are
    independent; with couplings the gradient at the truth is not zero, and learning ends elsewhere. The mode is found by
    going through the fewest layers where these have at most 4,096 states; else by raising one block of layers after
    another, up to `n_rounds` times from the units by themselves, which may end in a lesser peak.

    >>> rbm = RBM(Bernoulli(3), Bernoulli(2))
    >>> PerturbAndMAP().loss(rbm, torch.ones(1, 3)).shape
    torch.Size([])
    """

    n_rounds: int = 20

    def __post_init__(self) -> None:
        if self.n_rounds < 1:
            raise ValueError(f"`n_rounds` must be at least 1. Got {self.n_rounds}.")

    @classmethod
    def examples(cls) -> list[Case]:
        """Return a small machine without couplings and its own law: there alone it rests."""
        machine = small_machine()
        torch.nn.init.zeros_(machine.weight)
        return [Case(lambda *, generator: cls(), machine, partial(draw_exactly, machine, layers=(machine.data_layer,)))]

    def divides(self, model: nn.Module) -> bool:
        """Return whether rows can be apart: each has a perturbation and a mode of its own."""
        return type(self) is PerturbAndMAP and can_divide(model, self.inference)

    def check(self, model: nn.Module) -> None:
        """Raise unless the model is a machine of finite units whose modes can be found."""
        _machine(model)

    def draw_negatives(self, model: EnergyModel, observed: State, *, generator: torch.Generator | None = None) -> State:
        """Return the modes of as many perturbed energies as the batch has rows: all layers."""
        machine = _machine(model)
        n = machine.batch_shape(observed)[0]
        conditions = {name: observed[name] for name in machine.given}
        noise = {name: _gumbel(machine, name, n, observed, generator) for name in machine.layers}
        counted, n_states = counted_layers(machine)
        if counted and n_states is not None and n_states <= MAX_STATES:
            return _mode_by_counting(machine, counted, conditions, noise) | conditions
        return self._mode_by_ascent(machine, conditions, noise) | conditions

    def _negative_phase(
        self, model: BoltzmannMachine, positive: Filled, share: Tensor | float, generator: torch.Generator | None
    ) -> State:
        modes = self.draw_negatives(model, positive.state, generator=generator)
        model.add_gradient(modes, -share)
        return modes

    def _mode_by_ascent(self, machine: BoltzmannMachine, conditions: State, noise: State) -> State:
        fields = {name: machine.bias_field(name) for name in machine.layers}
        state = {name: _mode(machine.layer(name), fields[name], gamma) for name, gamma in noise.items()}
        for _ in range(self.n_rounds):
            before = dict(state)
            for name in (name for block in machine.blocks() for name in block):
                state[name] = _mode(machine.layer(name), machine.field(name, state | conditions), noise[name])
            if all(torch.equal(state[name], before[name]) for name in state):
                break
        return state


def _mode_by_counting(machine: BoltzmannMachine, counted: tuple[str, ...], conditions: State, noise: State) -> State:
    """Return the highest of all states of the counted layers, each with the best of the others."""
    states = {
        name: value.reshape(len(value), 1, *machine.layer(name).shape)  # an axis for samples, told apart by their noise
        for name, value in configurations(machine, counted, conditions).items()
    }
    value = machine.interaction(states | conditions)
    for name, x in states.items():
        units = machine.layer(name)
        value = value + units.total(units.log_base(x)) + _noise_at(units, x.squeeze(1), noise[name])
    others = [name for name in machine.layers if name not in counted]
    for name in others:
        units = machine.layer(name)
        weights = units.log_weights(machine.field(name, states | conditions))
        # State by state: a maximum over a last axis of size 2 takes several times as long.
        heights = (w + g for w, g in zip(weights.unbind(-1), noise[name].unbind(-1), strict=True))
        value = value + units.total(reduce(torch.maximum, heights))
    best = value.argmax(0)
    mode = {name: x.squeeze(1)[best] for name, x in states.items()}
    for name in others:
        mode[name] = _mode(machine.layer(name), machine.field(name, mode | conditions), noise[name])
    return {name: mode[name] for name in machine.layers}


def _mode(units: Units, field: Tensor, noise: Tensor) -> Tensor:
    """Return the state of each unit with the largest `θ·s(x) + log μ(x) + γ(x)`."""
    index = (units.log_weights(field) + noise).argmax(-1)
    return units.join_sites(_states(units).to(field)[index])


def _noise_at(units: Units, x: Tensor, noise: Tensor) -> Tensor:
    """Return `Σ_i γ_i(x_i)` of configurations x under the noise of each sample, `(len(x), n)`."""
    apart = units.split_sites(x).reshape(len(x), *units.sites, 1, -1)
    table = _states(units).to(x).reshape(noise.shape[-1], -1)
    found = (apart == table).all(-1).to(noise)
    return found.flatten(1) @ noise.flatten(1).t()


def _gumbel(
    machine: BoltzmannMachine, layer: str, n: int, observed: State, generator: torch.Generator | None
) -> Tensor:
    """Draw a Gumbel number for each state of each unit of a layer, `(n, *sites, n_states)`."""
    units = machine.layer(layer)
    u = draw_uniform(machine.zeros((n, *units.sites, len(_states(units))), observed), generator=generator)
    return -(-u.clamp_min(torch.finfo(u.dtype).tiny).log()).log()


def _states(units: Units) -> Tensor:
    states = units.states()
    if states is None:
        raise TypeError(f"PerturbAndMAP perturbs each state of each unit, and {units!r} has no finite list. Use PCD.")
    return states


def _machine(model: object) -> BoltzmannMachine:
    """Return the machine if its modes can be found; raise if not."""
    if not isinstance(model, BoltzmannMachine):
        raise TypeError(f"PerturbAndMAP needs a Boltzmann machine. Got {type(model).__name__}. Use JointLikelihood.")
    for name in model.layers:
        _states(model.layer(name))
        if model.ties(name, name) and (counted_layers(model)[1] or MAX_STATES + 1) > MAX_STATES:
            raise TypeError(
                f"PerturbAndMAP finds the mode of a layer tied to itself by counting, and layer {name!r} has more "
                f"than {MAX_STATES:,} states. Use PCD."
            )
    return model
