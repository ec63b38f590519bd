"""A lower bound of log Z that holds whatever any chain does: mean field from many starts."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor

from harmonium.draws import draw_normal
from harmonium.models import BoltzmannMachine
from harmonium.partition.proper import check_proper
from harmonium.types import State

_SCALES = (0.0, 1.0, 4.0, 16.0, 64.0)  # spreads of the fields at the starts


@torch.no_grad()
def mean_field_bound(
    model: BoltzmannMachine, *, n_starts: int = 64, n_steps: int = 200, generator: torch.Generator | None = None
) -> tuple[float, State, State]:
    """Return the best `Σ Φ(m) + Σ_l [A(θ_l) - θ_l·s(m_l)] ≤ log Z` over many starts, the modes there, the best fields.

    It holds for any fields θ with `m` their means, by the convexity of log Z (Gibbs, Bogoliubov, Feynman); only
    rounding can break it. Each start has fields of its own, from the biases alone to far apart, all up and all down
    among them; layers are then updated in turn until nothing moves. The modes are the most probable states under the
    fields of the distinct ends, best first, all layers; the fields are those of the best. A layer of one-hot vectors
    tied to each other has no such bound: -∞.

    >>> rbm = RBM(Bernoulli(3), Bernoulli(2))
    >>> bound, modes, fields = mean_field_bound(rbm, generator=torch.Generator().manual_seed(0))
    >>> bound <= exact_log_z(rbm).value
    True
    """
    check_proper(model)
    machine = copy.deepcopy(model).double()
    state, fields = _starts(machine, n_starts, generator)
    damping = 0.5 if any(machine.ties(name, name) for name in machine.layers) else 0.0
    bound, last = _bound(machine, state, fields), torch.full((n_starts,), -torch.inf, dtype=torch.float64)
    for _ in range(n_steps):
        for block in machine.blocks():
            for name in block:
                field = machine.field(name, state)
                fields[name] = torch.lerp(field, fields[name], damping) if damping else field
                state[name] = machine.layer(name).mean(fields[name])
        last, bound = bound, _bound(machine, state, fields)
        if bool((bound - last).abs().nan_to_num(0.0).amax() < 1e-9):
            break
    for name in machine.layers:
        units = machine.layer(name)
        if machine.ties(name, name) and units.sites != units.shape:
            bound = torch.full_like(bound, -torch.inf)
    bound = bound.nan_to_num(nan=-math.inf, posinf=-math.inf)
    order = bound.argsort(descending=True)
    modes = {name: machine.layer(name).mode(fields[name])[order] for name in machine.layers}
    flat = torch.cat([value.flatten(1) for value in modes.values()], 1).nan_to_num()
    _, inverse = flat.unique(dim=0, return_inverse=True)
    first = torch.stack([torch.nonzero(inverse == i)[0, 0] for i in range(int(inverse.max()) + 1)]).sort().values
    some = next(model.parameters())
    best = {name: field[order[0]].to(some) for name, field in fields.items()}
    return bound.max().item(), {name: value[first].to(some) for name, value in modes.items()}, best


def _starts(machine: BoltzmannMachine, n: int, generator: torch.Generator | None) -> tuple[State, State]:
    state, fields = {}, {}
    for name in machine.layers:
        units = machine.layer(name)
        bias = machine.bias_field(name).expand(n, *units.shape)
        like = torch.empty(n, *units.shape, dtype=bias.dtype, device=bias.device)
        low, high = units.bounds()
        if math.isfinite(high - low):
            scale = torch.tensor(_SCALES, dtype=bias.dtype)[torch.arange(n) % len(_SCALES)].to(bias)
            noise = draw_normal(like, generator=generator) * scale.reshape(n, *(1,) * len(units.shape))
            noise[1 % n], noise[2 % n] = 200.0, -200.0  # all up, all down
            fields[name] = bias + noise
        else:
            fields[name] = bias.clone()
        state[name] = units.mean(fields[name])
    return state, fields


def _bound(machine: BoltzmannMachine, state: State, fields: State) -> Tensor:
    total = machine.interaction(state)
    for name, field in fields.items():
        units = machine.layer(name)
        work = (field * units.statistic(state[name])).flatten(field.ndim - len(units.shape)).sum(-1)
        total = total + units.total(units.log_partition(field)) - work
    return total
