"""Ladders of chains that trade temperatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from harmonium.draws import draw_uniform
from harmonium.models import Tempered
from harmonium.partition.path import MachinePath
from harmonium.samplers import Gibbs
from harmonium.types import State

N_LADDERS = 32
"""How many ladders run side by side, without knowing of each other: the first half of them start from noise."""

_N_KEPT = 2000  # steps whose energies are kept, evenly spread
_N_ANNEALED = 10  # steps at each β on the way to a rung


class Ladders(NamedTuple):
    """What ladders leave: energies `(n_betas, n_kept, n_ladders)`, round trips, the kept layers at every rung."""

    slope: Tensor
    n_trips: int
    state: State

    def moved(self, betas: Tensor, new: Tensor) -> State:
        """Return a state for each of the new rungs: that of the nearest one."""
        nearest = (betas[:, None] - new).abs().argmin(0)
        return {name: x[nearest] for name, x in self.state.items()}


def climb(
    path: MachinePath,
    betas: Tensor,
    state: State,
    n_steps: int,
    *,
    generator: torch.Generator | None = None,
    on_step: Callable[[int], None] | None = None,
) -> Ladders:
    """Run ladders from a state `(n_betas, n_ladders, …)`: Gibbs steps at every β, then trades between neighbors.

    Even pairs and odd pairs trade in turn: what has risen is the next to be asked to rise, so that states travel rather
    than diffuse (Syed et al. 2022).
    """
    model, n, n_ladders = path.model, len(betas), len(next(iter(state.values()))[0])
    law = Tempered(model, betas.to(path.reference[model.data_layer]), path.reference)
    label = torch.arange(n * n_ladders).reshape(n, n_ladders)
    went_down = torch.zeros(n * n_ladders, dtype=torch.bool)  # has been at β = 0 since it was last at β = 1
    n_trips, kept, every = 0, [], max(1, n_steps // _N_KEPT)
    point = path.point(state)
    for step in range(n_steps):
        hidden, slope = {}, -point.linear.double()  # U = -[Φ(x) - r·s(x)]
        for name, field in point.fields.items():
            units = model.layer(name)
            hidden[name] = units.sample(law.temper(name, field), generator=generator)
            work = (field - path.reference[name]) * units.statistic(hidden[name])
            slope = slope - work.flatten(2).sum(-1).double()
        order = _trades(slope, betas, step % 2, generator)
        full = {name: _taken(x, order) for name, x in (point.state | hidden).items()}
        slope, label = _taken(slope, order), _taken(label, order)
        if step % every == 0:
            kept.append(slope)
        went_down[label[0]] = True
        n_trips += int(went_down[label[-1]].sum())
        went_down[label[-1]] = False
        point = path.point(_redrawn(path, law, full, generator))
        if on_step is not None:
            on_step(step + 1)
    return Ladders(torch.stack(kept, 1), n_trips, point.state)


def first_states(path: MachinePath, betas: Tensor, homes: State, *, generator: torch.Generator | None = None) -> State:
    """Return states for every rung: half of the ladders from noise, half from `homes`, annealed to their rungs.

    Those from noise come from β = 0 upward, the others from β = 1 downward. Every rung has homes of its own.
    """
    n, half = len(betas), N_LADDERS // 2
    noise = path.start(n * half, generator=generator).state
    state = {}
    for name, x in noise.items():
        index = torch.arange(n * (N_LADDERS - half)) % len(homes[name])
        parts = x.unflatten(0, (n, half)), homes[name][index].unflatten(0, (n, N_LADDERS - half))
        state[name] = torch.cat(parts, 1)
    for i in range(n):
        up, down = betas.clamp(max=betas[i].item()), betas.clamp(min=betas[n - 1 - i].item())
        beta = torch.stack([up, down], 1).repeat_interleave(torch.tensor([half, N_LADDERS - half]), 1)
        law = Tempered(path.model, beta.to(path.reference[path.model.data_layer]), path.reference)
        for _ in range(_N_ANNEALED):
            hidden = {
                name: path.model.layer(name).sample(law.temper(name, field), generator=generator)
                for name, field in path.point(state).fields.items()
            }
            state = _redrawn(path, law, state | hidden, generator)
    return state


def _redrawn(path: MachinePath, law: Tempered, state: State, generator: torch.Generator | None) -> State:
    """Draw the layers that the path keeps, given the others."""
    gibbs = Gibbs()
    for block in path.kept:
        gibbs.draw_block(law, block, state, generator=generator)
    return {name: state[name] for name in path.kept_layers()}


def _trades(slope: Tensor, betas: Tensor, parity: int, generator: torch.Generator | None) -> Tensor:
    """Return for each rung and ladder the rung whose state it takes: neighbors trade by Metropolis's rule."""
    n = len(betas)
    order = torch.arange(n)[:, None].repeat(1, slope.shape[1])
    low = torch.arange(parity, n - 1, 2)
    log_ratio = (betas[low] - betas[low + 1])[:, None] * (slope[low] - slope[low + 1])
    swapped = draw_uniform(log_ratio, generator=generator).log() < log_ratio
    order[low] += swapped.long()
    order[low + 1] -= swapped.long()
    return order


def _taken(x: Tensor, order: Tensor) -> Tensor:
    return x[order, torch.arange(x.shape[1])]
