"""log Z from parallel tempering."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from harmonium.draws import draw_uniform
from harmonium.models import BoltzmannMachine, Tempered
from harmonium.partition.bounds import guaranteed_bounds
from harmonium.partition.effort import Effort
from harmonium.partition.mbar import mbar
from harmonium.partition.modes import mean_field_modes
from harmonium.partition.path import MachinePath
from harmonium.partition.sandwich import DISAGREE, judged
from harmonium.partition.schedule import adapted_betas, thermodynamic_length
from harmonium.samplers import Gibbs
from harmonium.types import EnergyModel, Estimate, State

STRIDE = 1.0
"""How far apart two rungs are, in standard deviations of the energy that β scales: about half of the trades happen."""

FEWEST_TRIPS = 8
"""The fewest round trips, from β = 0 to 1 and back, that all ladders together must make."""

_N_LADDERS, _N_GROUPS, _MAX_RUNGS = 32, 16, 512
_STUDENT = 3.6  # of 15 degrees of freedom, where the normal law has 3
_N_KEPT = 2000  # steps whose energies are kept, evenly spread over what follows the burn-in
_BURN_IN = 0.25  # the share of the steps that is left out
_N_ANNEALED = 10  # steps at each β on the way to a rung


class Ladders(NamedTuple):
    """What many independent ladders leave: energies `(n_betas, n_kept, n_ladders)`, round trips, states at β = 1."""

    slope: Tensor
    n_trips: int
    top: State


def tempering(model: EnergyModel, effort: Effort) -> Estimate:
    """Estimate log Z by chains that trade temperatures, and a multistate estimate from all of them (`mbar`).

    Rungs lie equally far apart in thermodynamic length, as many as it takes (`STRIDE`): the ladder tunes itself.
    Thirty-two ladders run side by side without knowing of each other, for as many steps in all as a sandwich of the
    same effort takes; half of them start from noise, half from modes of mean field and from `samples`, annealed to
    their rungs from either end. The first quarter is left out. The error is the jackknife's over 16 groups of ladders,
    so that it feels how slowly chains mix; `[lower, upper]` are as wide as 3 standard errors of so few are (Student's
    law, 3.6). The estimate is not trusted where the ladders made fewer than 8 round trips, where the two halves, of the
    ladders or of the time, disagree, or where a guaranteed bound contradicts it.
    """
    if not isinstance(model, BoltzmannMachine):
        raise TypeError(f"Tempering needs a BoltzmannMachine. Got {type(model).__name__}. Use method='sandwich'.")
    path, generator = MachinePath(model, effort.reference), effort.generator  # type: ignore[arg-type]
    if path.gating is not None:
        raise ValueError("Tempering does not know layers that gate each other. Use method='sandwich'.")
    length = thermodynamic_length(path, generator=generator)[1][-1].item()
    n_rungs = min(_MAX_RUNGS, max(4, math.ceil(length / STRIDE) + 1))
    betas = adapted_betas(path, n_rungs, generator=generator)
    given = effort.given(path)
    modes = mean_field_modes(model, given, generator=generator)
    few = [modes.states, *given]
    homes = {name: torch.cat([states[name][:_N_LADDERS] for states in reversed(few)]) for name in _kept(path)}
    n_steps = max(200, 2 * effort.n_chains * effort.n_betas // (n_rungs * _N_LADDERS))
    found = _climb(path, betas, homes, n_steps, effort)
    value, error = _jackknifed(found.slope, betas)
    doubts = ladder_doubts(found, betas, value, error)
    total = value + path.log_z0()
    estimate = Estimate(total, error, total - _STUDENT * error, total + _STUDENT * error, "tempering")
    bounds = guaranteed_bounds(model, modes, [found.top, *given], generator=generator)
    return judged(estimate, doubts, bounds, effort, next(iter(found.top.values())).dtype)


def _climb(path: MachinePath, betas: Tensor, homes: State, n_steps: int, effort: Effort) -> Ladders:
    """Run the ladders: Gibbs steps at every β, then trades between neighbors, even pairs and odd pairs in turn."""
    model, generator, n = path.model, effort.generator, len(betas)
    law = Tempered(model, betas.to(path.reference[model.data_layer]), path.reference)
    noise = path.start(n * _N_LADDERS // 2, generator=generator).state
    index = torch.arange(_N_LADDERS - _N_LADDERS // 2) % len(next(iter(homes.values())))
    state = {}
    for name, x in noise.items():
        home = homes[name][index]
        state[name] = torch.cat([x.unflatten(0, (n, _N_LADDERS // 2)), home.expand(n, *home.shape)], 1)
    point = path.point(_annealed(path, betas, state, generator))
    label = torch.arange(_N_LADDERS).expand(n, -1).contiguous() + _N_LADDERS * torch.arange(n)[:, None]
    went_down = torch.zeros(n * _N_LADDERS, dtype=torch.bool)  # has been at β = 0 since it was last at β = 1
    n_trips, kept, burn_in = 0, [], int(_BURN_IN * n_steps)
    every = max(1, (n_steps - burn_in) // _N_KEPT)
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
        if step >= burn_in and (step - burn_in) % every == 0:
            kept.append(slope)
        went_down[label[0]] = True
        n_trips += int(went_down[label[-1]].sum())
        went_down[label[-1]] = False
        point = path.point(_redrawn(path, law, full, generator))
        if effort.on_beta is not None:
            effort.on_beta(step + 1, n_steps)
    top = {name: x[-1] for name, x in point.state.items()}
    return Ladders(torch.stack(kept, 1), n_trips, top)


def _annealed(path: MachinePath, betas: Tensor, state: State, generator: torch.Generator | None) -> State:
    """Bring the chains to their rungs: those from noise from β = 0 upward, the others from β = 1 downward."""
    n, half = len(betas), _N_LADDERS // 2
    for i in range(n):
        up, down = betas.clamp(max=betas[i].item()), betas.clamp(min=betas[n - 1 - i].item())
        beta = torch.stack([up, down], 1).repeat_interleave(torch.tensor([half, _N_LADDERS - half]), 1)
        law = Tempered(path.model, beta.to(path.reference[path.model.data_layer]), path.reference)
        for _ in range(_N_ANNEALED):
            fields = path.point(state).fields
            hidden = {
                name: path.model.layer(name).sample(law.temper(name, field), generator=generator)
                for name, field in fields.items()
            }
            state = _redrawn(path, law, state | hidden, generator)
    return state


def _redrawn(path: MachinePath, law: Tempered, state: State, generator: torch.Generator | None) -> State:
    """Draw the layers that the path keeps, given the others."""
    gibbs = Gibbs()
    for block in path.kept:
        gibbs.draw_block(law, block, state, generator=generator)
    return {name: state[name] for name in _kept(path)}


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


def _jackknifed(slope: Tensor, betas: Tensor) -> tuple[float, float]:
    """Return `log Z - log Z_0` and its standard error, leaving out two ladders at a time."""
    c = mbar(slope.flatten(1), betas)
    groups = [torch.arange(slope.shape[2]) % _N_GROUPS != i for i in range(_N_GROUPS)]
    values = torch.stack([mbar(slope[:, :, keep].flatten(1), betas, c)[-1] for keep in groups])
    return c[-1].item(), math.sqrt((1 - 1 / _N_GROUPS) * (values - values.mean()).square().sum().item())


def ladder_doubts(found: Ladders, betas: Tensor, value: float, error: float) -> list[str]:
    """Return what the ladders say against their estimate, in words."""
    doubts = []
    if found.n_trips < FEWEST_TRIPS:
        doubts.append(
            f"the chains made {found.n_trips} round trips between β = 0 and 1, fewer than {FEWEST_TRIPS}: they do not "
            "forget where they started. Use more steps (n_betas), or a reference fitted to the data"
        )
    n_ladders, n_kept = found.slope.shape[2], found.slope.shape[1]
    for what, first in (
        ("ladders that start from noise", found.slope[:, :, : n_ladders // 2]),
        ("the first half of the steps", found.slope[:, : n_kept // 2]),
    ):
        gap = mbar(first.flatten(1), betas)[-1].item() - value
        if abs(gap) > max(DISAGREE, 4 * error):
            doubts.append(f"{what} alone give {gap:+.2g} nats")
    return doubts


def _kept(path: MachinePath) -> list[str]:
    return [name for block in path.kept for name in block]
