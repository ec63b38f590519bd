"""A gate and its groups, summed out and drawn exactly: each unit of the gate knows its own group only."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from harmonium.draws import draw_categorical
from harmonium.models.summation import Summation
from harmonium.types import State

if TYPE_CHECKING:
    from harmonium.models.machine import BoltzmannMachine


class GateFields(NamedTuple):
    """The field on a gate, its groups left out, and the fields on the groups for each state of the gate."""

    gate: Tensor
    groups: list[State]


def gate_fields(machine: BoltzmannMachine, summation: Summation, present: State) -> GateFields:
    """Return the fields from which all of a gate and its groups follow: one product for each state that is not 0."""
    gate = summation.gate or ""
    units, own = machine.layer(gate), machine.field(gate, present, partial=True)
    groups = []
    for x in units.constant_states(own):
        is_closed = not bool(units.statistic(x).any())  # a gate at 0 adds nothing: Φ is linear in it
        state = present if is_closed else present | {gate: x}
        groups.append({name: machine.field(name, state, partial=is_closed) for name in summation.gated})
    return GateFields(own, groups)


def gate_log_weights(machine: BoltzmannMachine, summation: Summation, fields: GateFields) -> Tensor:
    """Return the log weight of each state of each unit of the gate, its group summed out, `(*batch, *sites, n)`.

    `θ_j·s(x) + log μ(x) + Σ_k A_jk(field given that the gate is x)`: the group of gate j knows of no other gate.
    """
    units = machine.layer(summation.gate or "")
    weights = units.log_weights(fields.gate)
    groups = []
    for of_state in fields.groups:
        parts = []
        for name, field in of_state.items():
            free = machine.layer(name).log_partition(field)
            n = free.ndim - len(machine.layer(name).sites) + len(units.sites)
            parts.append(free.flatten(n).sum(-1) if free.ndim > n else free)
        groups.append(torch.stack(parts).sum(0))
    return weights + torch.stack(groups, -1)


def gate_probabilities(machine: BoltzmannMachine, summation: Summation, fields: GateFields) -> Tensor:
    """Return the probability of each state of each unit of the gate, its group summed out, `(*batch, *sites, n)`."""
    weights = gate_log_weights(machine, summation, fields)
    # Along a last axis of two states PyTorch's softmax takes 14 times as long as along a first one.
    return weights.movedim(-1, 0).contiguous().softmax(0).movedim(0, -1)


def gate_moments(machine: BoltzmannMachine, summation: Summation, present: State) -> list[State]:
    """Return a state for each state x of the gate: the gate at `p(x)·x`, its groups at their means given x.

    A form that is linear in the gate and in its groups has its mean in the sum over them.
    """
    gate, fields = summation.gate or "", gate_fields(machine, summation, present)
    units, share = machine.layer(gate), gate_probabilities(machine, summation, fields)
    moments = []
    for p, x, of_state in zip(share.unbind(-1), units.constant_states(share), fields.groups, strict=True):
        means = {name: machine.layer(name).mean(field) for name, field in of_state.items()}
        moments.append({gate: _widened(p, units.shape, units.sites) * x} | means)
    return moments


def gate_means(machine: BoltzmannMachine, summation: Summation, present: State) -> State:
    """Return the means of the gate and of the layers that it gates."""
    gate, fields = summation.gate or "", gate_fields(machine, summation, present)
    units, share = machine.layer(gate), gate_probabilities(machine, summation, fields)
    means: State = {}
    for p, x, of_state in zip(share.unbind(-1), units.constant_states(share), fields.groups, strict=True):
        values = {gate: x} | {name: machine.layer(name).mean(field) for name, field in of_state.items()}
        for name, value in values.items():
            part = _widened(p, machine.layer(name).shape, units.sites) * value
            means[name] = means[name] + part if name in means else part
    return means


def _widened(p: Tensor, shape: tuple[int, ...], sites: tuple[int, ...]) -> Tensor:
    """Return numbers of the units of a gate, `(*batch, *sites)`, with axes for the entries of each."""
    return p.reshape(*p.shape, *(1,) * (len(shape) - len(sites)))


def draw_gate(
    machine: BoltzmannMachine, summation: Summation, fields: GateFields, *, generator: torch.Generator | None = None
) -> State:
    """Draw the units of a gate, their groups summed out, and then the groups."""
    gate = summation.gate or ""
    units = machine.layer(gate)
    chosen = draw_categorical(gate_probabilities(machine, summation, fields), generator=generator)
    drawn: State = {}
    for one, x, of_state in zip(chosen.unbind(-1), units.constant_states(chosen), fields.groups, strict=True):
        for name, value in ({gate: x} | of_state).items():  # of a group its field, that of the chosen state
            part = _widened(one, machine.layer(name).shape, units.sites) * value
            drawn[name] = drawn[name] + part if name in drawn else part
    for name in summation.gated:
        drawn[name] = machine.layer(name).sample(drawn[name], generator=generator)
    return drawn
