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


def expected(share: Tensor, values: Tensor) -> Tensor:
    """Return `Σ_c p_c x_c` over the first axis."""
    return (share.reshape(*share.shape, *(1,) * (values.ndim - share.ndim)) * values).sum(0)


def count(machine: BoltzmannMachine, present: State, layers: tuple[str, ...]) -> tuple[Tensor, State]:
    """Return `p(c | present)` of each configuration c of some layers, and the state at c, along a new first axis.

    The other missing layers, which no coupling may tie, are summed out and stand at their means given c.
    """
    states = present | configurations(machine, layers, present)
    fields = {name: machine.field(name, states) for name in machine.layers if name not in states}
    share = (-machine.energy_under(states, fields)).softmax(0)
    return share, states | {name: machine.layer(name).mean(field) for name, field in fields.items()}


def add_counted_gradient(machine: BoltzmannMachine, counted: tuple[str, ...], full: State, weight: Tensor) -> None:
    """Add `Σ_c Σ_batch weight_c · ∂E(x, c)/∂parameters` of the couplings; `full` and weights are as `count` gives them.

    A layer that depends on c is linear in its couplings, and no coupling sees two of them: it carries the weights. A
    coupling that sees no counted layer takes `Σ_c weight_c E[h | x, c]` at once, so that the products with the data are
    made once for all configurations.
    """
    scale = torch.as_tensor(machine.coupling_weight(weight, full))
    statistics = {name: machine.statistic(name, full[name]) for name in full}
    weighted = {
        name: scale.reshape(*scale.shape, *(1,) * (value.ndim - scale.ndim)) * value
        for name, value in statistics.items()
        if name not in counted and len(machine.layer(name).batch_shape(value)) == weight.ndim
    }
    summed = {name: value.sum(0) for name, value in weighted.items()}
    for layers, coupling in machine.terms:
        if not any(p.requires_grad for p in coupling.parameters()):
            continue
        sees_counted = any(name in counted for name in layers)
        carried = weighted if sees_counted else summed
        axes = weight.shape if sees_counted else weight.shape[1:]
        parts = [
            carried[name] if name in carried else statistics[name].expand(*axes, *machine.layer(name).shape)
            for name in layers
        ]
        if any(name in carried for name in layers):
            coupling.accumulate_grad(-1.0, *parts)
        else:
            coupling.accumulate_grad(-scale if sees_counted else -scale.sum(0), *parts)


def draw_counted(
    machine: BoltzmannMachine, layers: tuple[str, ...], present: State, *, generator: torch.Generator | None = None
) -> State:
    """Draw counted layers given a state with one batch axis, the others summed out."""
    states = configurations(machine, layers, present)
    share = (-machine.energy(present | states)).softmax(0).movedim(0, -1)
    index = draw_categorical(share, generator=generator).argmax(-1)
    return {name: value.reshape(len(value), *machine.layer(name).shape)[index] for name, value in states.items()}
