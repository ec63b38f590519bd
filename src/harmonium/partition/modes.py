"""Where a machine may have modes, and a lower bound of log Z that holds whatever any chain does: mean field."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium import workers
from harmonium.draws import draw_normal, draw_uniform
from harmonium.models import BoltzmannMachine, Tempered
from harmonium.partition.layer_starts import layer_starts
from harmonium.partition.proper import check_proper
from harmonium.types import State

_BOUND = "the bound"  # among the names of layers, where both travel together
_N_WARM = 20  # sweeps over which the shallow starts cool down
_DEPTHS = (1.0, 0.5, 0.2)  # β at the starts
_SCALES = (0.0, 1.0, 4.0, 16.0)  # spreads of the fields around the biases


@dataclass(frozen=True)
class Modes:
    """Fixed points of mean field with distinct most probable states, best first.

    Each row has its bound `Σ Φ(m) + Σ_l [A(θ_l) - θ_l·s(m_l)] ≤ log Z` with m the means under its fields θ, by the
    convexity of log Z (Gibbs, Bogoliubov, Feynman). It holds for any fields; only rounding can break it.
    """

    model: BoltzmannMachine
    bounds: Tensor
    fields: State
    states: State

    def __len__(self) -> int:
        return len(self.bounds)

    @property
    def bound(self) -> float:
        """The best bound of log Z, guaranteed."""
        return self.bounds[0].item()

    def cells(self, state: State) -> Tensor:
        """Return the mode under whose fields each state is most probable, `argmax_m Σ_l [θ_l·s(x_l) - A(θ_l)]`.

        It looks at the layers that the state holds. A function of x: the cells are disjoint, and they are everything.
        """
        total: Tensor | float = 0.0
        for name, x in state.items():
            units, fields = self.model.layer(name), self.fields[name]
            product = units.statistic(x).flatten(1).double() @ fields.flatten(1).double().t()
            total = total + product - units.total(units.log_partition(fields)).double()
        if not isinstance(total, Tensor):
            raise ValueError("The state is empty. Give the layers that decide the cell.")
        return total.argmax(1)


@torch.no_grad()
def mean_field_modes(
    model: BoltzmannMachine,
    starts: Sequence[State] = (),
    *,
    n_starts: int = 96,
    n_steps: int = 200,
    generator: torch.Generator | None = None,
) -> Modes:
    """Return the modes that mean field finds from many dispersed starts and from given states.

    There are starts at the biases and around them, near and far, at random corners with few, half or most units up, at
    all up and all down; a third each begin at β = 1, ½ and 0.2 and cool down, which finds broad modes before deep ones.
    Half as many more for each layer are the best of those that go through it (`layer_starts`). Layers are then updated
    in turn until nothing moves; workers share the starts. A layer of one-hot vectors tied to each other has no such
    bound: -∞.

    >>> rbm = RBM(Bernoulli(3), Bernoulli(2))
    >>> mean_field_modes(rbm, generator=torch.Generator().manual_seed(0)).bound <= exact_log_z(rbm).value
    True
    """
    check_proper(model)
    through_layers = _best_layer_starts(copy.deepcopy(model).float(), n_starts // 2)
    machine = copy.deepcopy(model).double()
    state, beta = _starts(machine, n_starts, [*starts, *through_layers], generator)
    part = workers.part_of(len(beta))
    if part is not None:
        state, beta = {name: part.take(value) for name, value in state.items()}, part.take(beta)
    fields: State = {}
    bound = torch.full((len(beta),), -torch.inf, dtype=torch.float64)
    for i in range(_N_WARM + n_steps):
        share = min(1.0, i / _N_WARM)
        law = machine if share == 1.0 else Tempered(machine, torch.lerp(beta, torch.ones_like(beta), share))
        _sweep(law, state, fields)
        if share < 1.0 and i + 1 < _N_WARM + n_steps:
            continue
        last, bound = bound, _bound(machine, state, fields)
        if bool((bound - last).abs().nan_to_num(0.0).amax() < 1e-9):
            break
    if part is not None and not part.repeated:
        fields = workers.gather_all(fields | {_BOUND: bound}, lengths=part.counts)
        bound = fields.pop(_BOUND)
    for name in machine.layers:
        units = machine.layer(name)
        if machine.ties(name, name) and units.sites != units.shape:
            bound = torch.full_like(bound, -torch.inf)
    bound = bound.nan_to_num(nan=-math.inf, posinf=-math.inf)
    order = bound.argsort(descending=True)
    modes = {name: machine.layer(name).mode(fields[name])[order] for name in machine.layers}
    first = _distinct(machine, modes)
    some = next(model.parameters())
    return Modes(
        model,
        bound[order][first],
        {name: field[order][first].to(some) for name, field in fields.items()},
        {name: value[first].to(some) for name, value in modes.items()},
    )


def _sweep(law: BoltzmannMachine, state: State, fields: State) -> None:
    """Set the fields on the layers and their means in turn, in place; half the way where a layer is tied to itself."""
    damping = 0.5 if any(law.ties(name, name) for name in law.layers) else 0.0
    for block in law.blocks():
        for name in block:
            field = law.field(name, state)
            fields[name] = torch.lerp(field, fields[name], damping) if damping and name in fields else field
            state[name] = law.layer(name).mean(fields[name])


def _best_layer_starts(machine: BoltzmannMachine, n: int) -> list[State]:
    """Return the n starts through each layer, all different, that have the best bounds after two sweeps.

    There may be thousands, from which a few are chosen: single precision does, and workers share them.
    """
    found: list[State] = []
    for state in layer_starts(machine):
        fields: State = {}
        part = workers.part_of(len(next(iter(state.values()))))
        if part is not None:
            state = {name: part.take(value) for name, value in state.items()}
        for _ in range(2):
            _sweep(machine, state, fields)
        best = _best(state | {_BOUND: _bound(machine, state, fields).nan_to_num(nan=-math.inf)}, 4 * n)
        if part is not None and not part.repeated:
            best = _best(workers.gather_all(best, lengths=[min(4 * n, count) for count in part.counts]), 4 * n)
        del best[_BOUND]
        modes = {name: machine.layer(name).mode(machine.field(name, best)) for name in machine.layers}
        first = _distinct(machine, modes)[:n]
        found.append({name: value[first] for name, value in best.items()})
    return found


def _best(rows: State, n: int) -> State:
    """Return the n rows that have the best bounds, the best first."""
    order = rows[_BOUND].argsort(descending=True, stable=True)[:n]
    return {name: value[order] for name, value in rows.items()}


def _starts(
    machine: BoltzmannMachine, n: int, given: Sequence[State], generator: torch.Generator | None
) -> tuple[State, Tensor]:
    """Return full states to start from, layers at their means, and the β of each."""
    filled = [machine.fill({name: x.double() for name, x in part.items()}).state for part in given]
    state = {}
    corner = torch.arange(n) % 2 == 1
    for name in machine.layers:
        units = machine.layer(name)
        bias = machine.bias_field(name).expand(n, *units.shape)
        like = torch.empty(n, *units.shape, dtype=bias.dtype, device=bias.device)
        low, high = units.bounds()
        wide = (n, *(1,) * len(units.shape))
        if not math.isfinite(high - low):
            state[name] = units.mean(bias)
        else:
            scale = torch.tensor(_SCALES, dtype=bias.dtype)[torch.arange(n) // 2 % len(_SCALES)].to(bias)
            field = bias + draw_normal(like, generator=generator) * scale.reshape(wide)
            width = bias[0].numel()
            share = (0.5 / width) ** draw_uniform(like.flatten(1)[:, :1], generator=generator).reshape(wide)
            share = torch.where((torch.arange(n) % 4 == 1).reshape(wide).to(share.device), share, 1 - share)
            up = draw_uniform(like, generator=generator) < share
            field = torch.where(corner.reshape(wide).to(field.device), torch.where(up, 200.0, -200.0).to(field), field)
            field[1 % n], field[3 % n] = 200.0, -200.0  # all up, all down
            state[name] = units.mean(field)
        state[name] = torch.cat([state[name], *(part[name] for part in filled)])
    beta = torch.tensor(_DEPTHS, dtype=torch.float64)[torch.arange(n) // 8 % len(_DEPTHS)]
    n_given = len(next(iter(state.values()))) - n
    return state, torch.cat([beta, torch.ones(n_given, dtype=torch.float64)]).to(next(iter(state.values())).device)


def _distinct(machine: BoltzmannMachine, modes: State) -> Tensor:
    """Return the first row of each distinct state of the finite layers, of all where none is finite."""
    finite = [name for name in modes if machine.layer(name).n_configurations() is not None]
    flat = torch.cat([modes[name].flatten(1) for name in finite or modes], 1).nan_to_num().mul(1e4).round()
    _, inverse = flat.unique(dim=0, return_inverse=True)
    return torch.stack([torch.nonzero(inverse == i)[0, 0] for i in range(int(inverse.max()) + 1)]).sort().values


def _bound(machine: BoltzmannMachine, state: State, fields: State) -> Tensor:
    total = machine.interaction(state)
    for name, field in fields.items():
        units = machine.layer(name)
        work = (field * units.statistic(state[name])).flatten(field.ndim - len(units.shape)).sum(-1)
        total = total + units.total(units.log_partition(field)) - work
    return total
