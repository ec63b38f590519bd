"""log Z by the best way there is."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.partition.ais import (
    MARKOV,
    Progress,
    anneal,
    equilibrate,
    from_weights,
    melt,
    reversed_estimate,
)
from harmonium.partition.base import Path, Reference, path_of
from harmonium.partition.exact import MAX_STATES, counted_layers, exact_log_z
from harmonium.partition.mean_field_bound import mean_field_bound
from harmonium.partition.schedule import adapted_betas
from harmonium.partition.states_bound import finite_layers, states_bound
from harmonium.types import EnergyModel, Estimate, Filled, State

WIDEST = 1.0
"""The width of a sandwich, in nats, beyond which it is not trusted."""

DISAGREE = 0.3
"""How far, in nats, populations of chains that start apart may differ."""

NEGLIGIBLE = 9.0
"""A mode so many nats below the whole adds less than a thousandth of a nat."""


@torch.no_grad()
def log_z(
    model: EnergyModel,
    *,
    n_chains: int = 512,
    n_betas: int = 1000,
    n_steps: int = 200,
    reference: Reference | None = None,
    generator: torch.Generator | None = None,
    on_beta: Progress | None = None,
) -> Estimate:
    """Return log Z: exactly where it can be counted, else between bounds (`sandwich`)."""
    if isinstance(model, BoltzmannMachine):
        n_states = counted_layers(model)[1]
        if n_states is not None and n_states <= MAX_STATES:
            return exact_log_z(model)
    return sandwich(
        model,
        n_chains=n_chains,
        n_betas=n_betas,
        n_steps=n_steps,
        reference=reference,
        generator=generator,
        on_beta=on_beta,
    )


@torch.no_grad()
def sandwich(
    model: EnergyModel,
    *,
    n_chains: int = 512,
    n_betas: int = 1000,
    n_steps: int = 200,
    reference: Reference | None = None,
    generator: torch.Generator | None = None,
    on_beta: Progress | None = None,
) -> Estimate:
    """Estimate log Z between a lower and an upper bound, and say whether it deserves trust.

    Annealed importance sampling runs up (a stochastic lower bound) and down again from equilibrated samples (an upper
    bound); the value is Bennett's (1976) estimate from both sets of weights. `[lower, upper]` are the two bounds, each
    three standard errors outward. They share their modes: chains that never saw one cannot miss it. So a machine is
    also looked at from elsewhere: `at_least` is the best of the mean-field bound from many dispersed starts and of the
    sum over all states at hand, both guaranteed. Where it contradicts the estimate, the annealing is made again from
    the law of the best mean-field mode. The estimate is not trusted, and says why, if its bounds lie more than 1 nat
    apart, if a guaranteed bound contradicts it, or if chains that start at the modes disagree.
    """
    first = _annealed(path_of(model, reference), n_chains, n_betas, n_steps, generator, on_beta)
    if not isinstance(model, BoltzmannMachine):
        return _judged(first.estimate, [], n_betas)
    floor, modes, fields = mean_field_bound(model, generator=generator)
    runs = [first]
    floor = max(floor, _states_floor(model, [first.ends, modes], generator))
    if floor > first.estimate.upper:
        runs.append(_annealed(path_of(model, fields), n_chains, n_betas, n_steps, generator, on_beta))
        floor = max(floor, _states_floor(model, [run.ends for run in runs] + [modes], generator))
    best = max(runs, key=lambda run: run.estimate.value)
    doubts = _doubts(model, best, runs, modes, floor, n_chains, n_steps, generator)
    upper = best.estimate.upper
    for other in runs:
        if other is not best:  # what the best run may not have seen
            upper = float(torch.logaddexp(torch.tensor(upper), torch.tensor(other.estimate.upper)))
    estimate = replace(best.estimate, at_least=floor, lower=max(best.estimate.lower, floor), upper=max(upper, floor))
    return _judged(estimate, doubts, n_betas)


class _Run(NamedTuple):
    """An annealing up and down: its estimate, the path, the temperatures, and where its chains were at β = 1."""

    estimate: Estimate
    path: Path
    betas: Tensor
    ends: State


def _annealed(
    path: Path,
    n_chains: int,
    n_betas: int,
    n_steps: int,
    generator: torch.Generator | None,
    on_beta: Progress | None,
) -> _Run:
    betas = adapted_betas(path, n_betas, generator=generator)
    up, point = anneal(path, betas, n_chains, generator=generator, on_beta=on_beta)
    start = equilibrate(path, point, up, n_steps, generator=generator)
    down = melt(path, betas, start, generator=generator, on_beta=on_beta)
    low, high = from_weights(up, path.log_z0(), "ais"), reversed_estimate(down, path.log_z0())
    value, error = bennett(up, down)
    value += path.log_z0()
    lower, upper = min(low.lower, value), max(high.upper, value)
    estimate = Estimate(value, error, lower, upper, "sandwich", ess=low.ess)
    ends = {name: torch.cat([x, start.state[name]]) for name, x in point.state.items()}
    return _Run(estimate, path, betas, ends)


def _states_floor(model: BoltzmannMachine, pools: list[State], generator: torch.Generator | None) -> float:
    """Return the best sum over the states of several pools, -∞ if no layer is finite."""
    wanted = finite_layers(model)
    if not wanted:
        return -math.inf
    parts = []
    for pool in pools:
        missing = {name for name in model.layers if name not in pool}
        full = model.fill(pool) if missing else Filled(pool, {})
        drawn = {n: model.layer(n).sample(field, generator=generator) for n, field in full.fields.items()}
        parts.append({name: (full.state | drawn)[name] for name in wanted})
    return states_bound(model, {name: torch.cat([part[name] for part in parts]) for name in wanted})


def _doubts(
    model: BoltzmannMachine,
    best: _Run,
    runs: list[_Run],
    modes: State,
    floor: float,
    n_chains: int,
    n_steps: int,
    generator: torch.Generator | None,
) -> list[str]:
    """Return what speaks against the estimate, in words."""
    doubts = []
    value, upper = best.estimate.value, best.estimate.upper
    if floor > upper:
        doubts.append(
            f"a guaranteed lower bound is {floor:.6g}, {floor - upper:.2g} nats above it: the chains missed a mode "
            "that mean field found"
        )
    for other in runs:
        if other is not best and other.estimate.value > value - NEGLIGIBLE:
            doubts.append(
                f"annealing from another law gives {other.estimate.value:.6g}: the chains see different modes"
            )
    n_modes = len(next(iter(modes.values())))
    if n_modes > 1 and not doubts:
        index = torch.arange(max(64, n_chains // 4)) % min(n_modes, 64)
        point = best.path.point({name: value[index] for name, value in modes.items()})
        for _ in range(n_steps):
            point = best.path.advance(point, 1.0, generator=generator)
        apart = reversed_estimate(melt(best.path, best.betas, point, generator=generator), best.path.log_z0())
        gap = apart.value - value
        margin = 3 * apart.error if math.isfinite(apart.error) else MARKOV
        # From a mode m they give log Z + log(π_m/q_m), its mass over the share of annealed chains that end there: above
        # the estimate where the annealing sees too little of it, below it where the mode is of no account.
        if gap > max(DISAGREE, margin):
            doubts.append(
                f"chains that start at {min(n_modes, 64)} modes of mean field give {apart.value:.6g}, {gap:+.2g} nats: "
                "populations that start apart do not meet"
            )
    return doubts


def _judged(estimate: Estimate, doubts: list[str], n_betas: int) -> Estimate:
    """Return the estimate with the reasons not to trust it, and warn of them."""
    width = estimate.upper - estimate.lower
    if width > WIDEST:
        apart = f"the bounds of log Z are {width:.2g} nats apart. Use more temperatures (n_betas={4 * n_betas}), more "
        doubts = [apart + "chains, or a reference fitted to the data", *doubts]
    note = "; ".join(doubts)
    if note:
        warnings.warn(f"log Z is not trustworthy: {note}.", stacklevel=4)
    return replace(estimate, trusted=not note, note=note)


def bennett(up: Tensor, down: Tensor) -> tuple[float, float]:
    """Return `log Z - log Z_0` and its error from log weights made upward and downward (Bennett 1976; Shirts 2003).

    The value c solves `Σ_up σ(up - c - M) = Σ_down σ(down + c + M)`, `M = log(n_up/n_down)`, found by bisection since
    the left side falls with c and the right side rises.
    """
    ratio = math.log(len(up) / len(down))
    low = min(up.min().item(), -down.max().item()) - 50.0
    high = max(up.max().item(), -down.min().item()) + 50.0
    for _ in range(100):
        c = (low + high) / 2
        balance = torch.sigmoid(up - c - ratio).sum() - torch.sigmoid(down + c + ratio).sum()
        low, high = (c, high) if balance > 0 else (low, c)
    c = (low + high) / 2
    f, g = torch.sigmoid(up - c - ratio), torch.sigmoid(down + c + ratio)
    return c, math.sqrt(_relative_variance(f) + _relative_variance(g))


def _relative_variance(x: Tensor) -> float:
    return (x.var() / x.mean().square() / len(x)).item()
