"""Block Gibbs sampling."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.samplers.base import Info, Sampler
from harmonium.types import EnergyModel, State, without_gradient
from harmonium.units import Bernoulli, Spin


@dataclass(frozen=True)
class Gibbs(Sampler):
    """Draw each block of layers given the others (lab exercise, section 1): v | h, then h | v, and again.

    Layers that no coupling ties are drawn at once, and so are a gate and its groups: the gate with the groups summed
    out, then the groups. A layer tied to itself is drawn site by site. The blocks come in the order of the machine's
    layers, so that a step of an RBM draws v | h and then h | v; `info["fields"]` holds the fields of the last block,
    from which its means follow without another product; none where it is a gate with its groups. `info["bytes"]` says
    whether some coupling multiplied layers as bytes (`Rounded`).

    >>> Gibbs()
    Gibbs(clamp={})
    """

    whole = True

    def chain_axis(self) -> int | None:
        """Return 0."""
        return 0

    def init(
        self, model: EnergyModel, x: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> State:
        """Return the state with the layers of `x` at their values and the others drawn given them, or by their biases.

        A bare tensor is the data layer.
        """
        machine = _machine(model)
        state = {name: value for name, value in machine.state(x).items() if name in machine.layers}
        n = machine.batch_shape(state)
        for block in machine.blocks():
            if set(machine.layers) - set(state) == set(block) and block == machine.graph.joint:
                state = machine.draw_missing(state, generator=generator)
            for layer in block:
                if layer not in state and not machine.ties(layer, layer):
                    tied = [name for name in machine.layers if name != layer and machine.ties(layer, name)]
                    if all(name in state for name in tied):
                        state[layer] = machine.sample(layer, state, generator=generator)
        if len(state) < len(machine.layers):
            rest = machine.initial(math.prod(n), generator=generator)
            shapes = {name: machine.layer(name).shape for name in machine.layers}
            state = {name: rest[name].reshape(*n, *shapes[name]) for name in machine.layers} | state
        return {name: state[name] for name in machine.layers}

    @without_gradient
    def step(self, model: EnergyModel, state: State, *, generator: torch.Generator | None = None) -> tuple[State, Info]:
        """Draw every block once."""
        machine, state = _machine(model), dict(state)
        fields: State = {}
        for block in machine.blocks():
            fields = self.draw_block(machine, block, state, generator=generator)
        return state, {"fields": fields, "bytes": machine.graph.multiplies_bytes}

    def draw_block(
        self,
        machine: BoltzmannMachine,
        block: Sequence[str],
        state: State,
        *,
        fields: State | None = None,
        generator: torch.Generator | None = None,
    ) -> State:
        """Draw the layers of one block into `state`; return the fields they were drawn from.

        `fields` are those that are known already. A layer tied to itself is drawn site by site and has none.
        """
        used: State = {}
        if block == machine.graph.joint and not any(layer in self.clamp for layer in block):
            rest = {name: value for name, value in state.items() if name not in block}
            state.update(machine.draw_missing(rest, generator=generator))
            return used
        for layer in block:
            if self.clamp.get(layer, False) is True:
                continue
            if machine.ties(layer, layer):
                state[layer] = self.sweep(machine, layer, state, generator=generator)
                continue
            known = None if fields is None else fields.get(layer)
            used[layer] = machine.field(layer, state) if known is None else known
            drawn = machine.layer(layer).sample(used[layer], generator=generator)
            state[layer] = self.hold(layer, state[layer], drawn) if layer in self.clamp else drawn
        return used

    def sweep(
        self, machine: BoltzmannMachine, layer: str, state: State, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Draw the sites of a layer tied to itself one after another."""
        units = machine.layer(layer)
        weight = machine.lateral(layer) if isinstance(units, Bernoulli | Spin) else None
        if weight is not None:
            return self._sweep_pairs(machine, layer, state, weight, generator)
        x = state[layer].clone()
        for site in map(units.site, range(math.prod(units.sites))):
            others = x.clone()
            others[site] = 0.0  # the entries of a one-hot vector must not act on each other
            drawn = self.hold(layer, x, machine.sample(layer, state | {layer: others}, generator=generator))
            x[site] = drawn[site]
        return x

    def _sweep_pairs(
        self,
        machine: BoltzmannMachine,
        layer: str,
        state: State,
        weight: Tensor,
        generator: torch.Generator | None,
    ) -> Tensor:
        """Sweep binary units that meet in pairs: the fields are made once and follow each change by a row of W."""
        units, n = machine.layer(layer), weight.shape[-1]
        batch = machine.batch_shape(state)
        rows = weight.reshape(*weight.shape[:-2], *(1,) * (len(batch) - weight.ndim + 2), n, n)
        field = machine.field(layer, state).reshape(*batch, n).clone()
        x = state[layer].reshape(*batch, n).clone()
        held = self.clamp.get(layer, False)
        kept = held.expand(*batch, *units.shape).reshape(*batch, n) if isinstance(held, Tensor) else None
        for i in range(n):
            old = x[..., i].clone()
            new = units.sample(field[..., i], generator=generator)
            if kept is not None:
                new = torch.where(kept[..., i], old, new)
            x[..., i] = new
            field.add_((new - old).unsqueeze(-1) * rows[..., i, :])
        return x.reshape(state[layer].shape)


def _machine(model: EnergyModel) -> BoltzmannMachine:
    if not isinstance(model, BoltzmannMachine):
        raise TypeError(
            f"Gibbs needs a BoltzmannMachine, whose conditionals are known. Got {type(model).__name__}. "
            "Use Langevin or MALA for other energies."
        )
    return model
