"""Bounds of log Z that hold whatever any chain did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from harmonium.models import BoltzmannMachine
from harmonium.partition.effort import Effort
from harmonium.partition.modes import Modes, mean_field_modes
from harmonium.partition.states_bound import finite_layers, states_bound
from harmonium.partition.tree_bound import tree_bound
from harmonium.types import EnergyModel, Estimate, Filled, State, as_state

MOST_UNITS = 256
"""The most units for which an estimate also looks for the upper bound of trees; `bounds` always does."""


ROUNDING = 1e-11
"""What the sums of double precision may be off by, beside their size."""


@dataclass(frozen=True)
class Bounds:
    """`at_least ≤ log Z ≤ at_most`, guaranteed up to rounding."""

    at_least: float = -math.inf
    at_most: float = math.inf


@torch.no_grad()
def guaranteed_bounds(
    model: BoltzmannMachine,
    modes: Modes,
    pool: Sequence[State],
    *,
    max_units: int | None = MOST_UNITS,
    generator: torch.Generator | None = None,
) -> Bounds:
    """Return the better of mean field and of the states at hand from below, and trees from above where there are pairs.

    `pool` are populations of states, of any layers from which the others can be drawn.
    """
    floor = max(modes.bound, states_floor(model, [*pool, modes.states], generator=generator))
    floor -= ROUNDING * max(1.0, abs(floor))
    n_units = sum(math.prod(model.layer(name).sites) for name in model.layers)
    if max_units is not None and n_units > max_units:
        return Bounds(floor)
    try:
        ceiling = tree_bound(model)
        return Bounds(floor, ceiling + ROUNDING * max(1.0, abs(ceiling)))
    except ValueError:  # no sum over pairs of units: nothing is known from above
        return Bounds(floor)


def bounds(model: EnergyModel, effort: Effort) -> Estimate:
    """Return the guaranteed bounds alone, without any annealing: the value is the middle, and has no error."""
    if not isinstance(model, BoltzmannMachine):
        raise TypeError(
            f"Guaranteed bounds need a BoltzmannMachine. Got {type(model).__name__}. Use method='sandwich'."
        )
    given = [] if effort.samples is None else [as_state(effort.samples, model.data_layer)]
    modes = mean_field_modes(model, given, generator=effort.generator)
    found = guaranteed_bounds(model, modes, given, max_units=None, generator=effort.generator)
    low, high = found.at_least, found.at_most
    if math.isnan(low) or math.isnan(high):
        raise ValueError(f"The bounds of log Z came out as [{low}, {high}]. Check the parameters of the model for NaN.")
    value = (low + high) / 2 if math.isfinite(high) else low
    width = high - low
    note = "" if width <= 1.0 else f"guaranteed bounds alone, {width:.3g} nats apart: the value is no estimate"
    return Estimate(value, width / 2, low, high, "bounds", trusted=not note, note=note, at_least=low, at_most=high)


@torch.no_grad()
def states_floor(model: BoltzmannMachine, pools: Sequence[State], *, generator: torch.Generator | None = None) -> float:
    """Return `log Σ e^{-F(x)} ≤ log Z` over the states of several pools, missing layers drawn; -∞ if none is finite."""
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
