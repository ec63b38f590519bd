"""Block Gibbs sampling."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.samplers.base import Info, Sampler
from harmonium.types import EnergyModel, State, without_gradient


@dataclass(frozen=True)
class Gibbs(Sampler):
    """Draw each block of layers given the others (lab exercise, section 1): v | h, then h | v, and again.

    Layers that no coupling ties are drawn at once. A layer tied to itself is drawn site by site. The blocks come in the
    order of the machine's layers, so that a step of an RBM draws v | h and then h | v; `info["fields"]` holds the
    fields of the last block, from which its means follow without another product.

    >>> Gibbs()
    Gibbs(clamp={})
    """

    def init(self, model: EnergyModel, x: Tensor, *, generator: torch.Generator | None = None) -> State:
        """Return the state with the data layer at `x` and the other layers drawn given it, or under their biases."""
        machine = _machine(model)
        state = machine.state(x)
        n = machine.layer(machine.data_layer).batch_shape(x)
        for block in machine.blocks():
            for layer in block:
                if layer not in state:
                    tied = [name for name in machine.units if name != layer and machine.ties(layer, name)]
                    if all(name in state for name in tied):
                        state[layer] = machine.sample(layer, state, generator=generator)
        if len(state) < len(machine.units):
            rest = machine.initial(math.prod(n), generator=generator)
            shapes = {name: machine.layer(name).shape for name in machine.units}
            state = {name: rest[name].reshape(*n, *shapes[name]) for name in machine.units} | state
        return {name: state[name] for name in machine.units}

    @without_gradient
    def step(self, model: EnergyModel, state: State, *, generator: torch.Generator | None = None) -> tuple[State, Info]:
        """Draw every block once."""
        machine, state = _machine(model), dict(state)
        fields: State = {}
        for block in machine.blocks():
            fields = {}
            for layer in block:
                if self.clamp.get(layer, False) is True:
                    continue
                if machine.ties(layer, layer):
                    state[layer] = self.sweep(machine, layer, state, generator=generator)
                    continue
                fields[layer] = machine.field(layer, state)
                drawn = machine.layer(layer).sample(fields[layer], generator=generator)
                state[layer] = self.hold(layer, state[layer], drawn)
        return state, {"fields": fields}

    def sweep(
        self, machine: BoltzmannMachine, layer: str, state: State, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Draw the sites of a layer tied to itself one after another."""
        units = machine.layer(layer)
        x = state[layer].clone()
        for site in map(units.site, range(math.prod(units.sites))):
            others = x.clone()
            others[site] = 0.0  # the entries of a one-hot vector must not act on each other
            drawn = self.hold(layer, x, machine.sample(layer, state | {layer: others}, generator=generator))
            x[site] = drawn[site]
        return x


def _machine(model: EnergyModel) -> BoltzmannMachine:
    if not isinstance(model, BoltzmannMachine):
        raise TypeError(
            f"Gibbs needs a BoltzmannMachine, whose conditionals are known. Got {type(model).__name__}. "
            "Use Langevin or MALA for other energies."
        )
    return model
