"""Layers that are tied to each other, summed out exactly where a small one among them can be gone through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from harmonium.draws import draw_categorical
from harmonium.types import State

if TYPE_CHECKING:
    from harmonium.models.machine import BoltzmannMachine


@dataclass(frozen=True)
class Summation:
    """How missing layers are summed out, the ones in `closed` by their log-partition functions.

    `counted` layers are gone through configuration by configuration. The units of `gate` are gone through one by one,
    each with its own group of the layers in `gated`.
    """

    closed: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    gate: str | None = None
    gated: tuple[str, ...] = ()

    @property
    def is_closed(self) -> bool:
        """Whether log-partition functions do it all."""
        return not self.counted and self.gate is None


def configurations(machine: BoltzmannMachine, layers: tuple[str, ...], present: State) -> State:
    """Return all configurations of some layers along a new first axis, to be broadcast over the batch of a state."""
    units = {name: machine.layer(name) for name in layers}
    counts = {name: layer.n_configurations() or 1 for name, layer in units.items()}
    some = machine.zeros((), present)
    index = torch.arange(torch.Size(counts.values()).numel(), device=some.device)
    axes = (1,) * len(machine.batch_shape(present))
    state: State = {}
    for name, layer in reversed(units.items()):
        values = layer.configurations(index % counts[name]).to(some)
        state[name] = values.reshape(len(index), *axes, *layer.shape)
        index = index // counts[name]
    return state


def gate_log_weights(machine: BoltzmannMachine, summation: Summation, present: State) -> Tensor:
    """Return the log weight of each state of each unit of the gate, its group summed out, `(*batch, *sites, n)`.

    `θ_j·s(x) + log μ(x) + Σ_k A_jk(field given that the gate is x)`: the group of gate j knows of no other gate.
    """
    gate = summation.gate or ""
    units = machine.layer(gate)
    weights = units.log_weights(machine.field(gate, present, partial=True))
    groups = []
    for x in units.constant_states(weights):
        of_state = []
        for name in summation.gated:
            free = machine.layer(name).log_partition(machine.field(name, present | {gate: x}))
            n = free.ndim - len(machine.layer(name).sites) + len(units.sites)
            of_state.append(free.flatten(n).sum(-1) if free.ndim > n else free)
        groups.append(torch.stack(of_state).sum(0))
    return weights + torch.stack(groups, -1)


def gate_means(machine: BoltzmannMachine, summation: Summation, present: State) -> State:
    """Return the means of the gate and of the layers that it gates."""
    gate = summation.gate or ""
    units, share = machine.layer(gate), gate_log_weights(machine, summation, present).softmax(-1)
    means: State = {}
    for p, x in zip(share.unbind(-1), units.constant_states(share), strict=True):
        for name in (gate, *summation.gated):
            value = x if name == gate else machine.mean(name, present | {gate: x})
            part = p.reshape(*p.shape, *(1,) * (len(machine.layer(name).shape) - len(units.sites))) * value
            means[name] = means[name] + part if name in means else part
    return means


def expected(share: Tensor, values: Tensor) -> Tensor:
    """Return `Σ_c p_c x_c` over the first axis."""
    return (share.reshape(*share.shape, *(1,) * (values.ndim - share.ndim)) * values).sum(0)


def draw_counted(
    machine: BoltzmannMachine, layers: tuple[str, ...], present: State, *, generator: torch.Generator | None = None
) -> State:
    """Draw counted layers given a state with one batch axis, the others summed out."""
    states = configurations(machine, layers, present)
    share = (-machine.energy(present | states)).softmax(0).movedim(0, -1)
    index = draw_categorical(share, generator=generator).argmax(-1)
    return {name: value.reshape(len(value), *machine.layer(name).shape)[index] for name, value in states.items()}


def draw_gate(
    machine: BoltzmannMachine, summation: Summation, present: State, *, generator: torch.Generator | None = None
) -> State:
    """Draw the units of a gate given a state, their groups summed out."""
    gate = summation.gate or ""
    units = machine.layer(gate)
    one_hot = draw_categorical(gate_log_weights(machine, summation, present).softmax(-1), generator=generator)
    parts = zip(one_hot.unbind(-1), units.constant_states(one_hot), strict=True)
    wide = len(units.shape) - len(units.sites)
    return {gate: torch.stack([p.reshape(*p.shape, *(1,) * wide) * x for p, x in parts]).sum(0)}
