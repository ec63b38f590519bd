"""log Z by the best way there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine, ScaleMixture
from harmonium.models.layers import check_eager
from harmonium.partition.ais import Progress
from harmonium.partition.base import Reference
from harmonium.partition.bethe import bethe
from harmonium.partition.bounds import bounds
from harmonium.partition.effort import Effort
from harmonium.partition.exact import MAX_STATES, counted_layers, exact_log_z
from harmonium.partition.perturb_and_map import perturb_and_map
from harmonium.partition.sandwich import sandwich
from harmonium.partition.tempering import tempering
from harmonium.types import EnergyModel, Estimate, check_generator

METHODS: dict[str, Callable[[EnergyModel, Effort], Estimate]] = {
    "exact": lambda model, _: exact_log_z(model),  # type: ignore[arg-type]
    "sandwich": sandwich,
    "tempering": tempering,
    "bounds": bounds,
    "bethe": lambda model, _: bethe(model),  # type: ignore[arg-type]
    "perturb-and-map": lambda model, effort: perturb_and_map(model, generator=effort.generator),  # type: ignore[arg-type]
}
"""The ways to log Z by name."""


@torch.no_grad()
def log_z(
    model: EnergyModel,
    *,
    method: str | None = None,
    n_chains: int = 512,
    n_betas: int = 1000,
    n_steps: int = 200,
    reference: Reference | None = None,
    samples: Tensor | Mapping[str, Tensor] | None = None,
    generator: torch.Generator | None = None,
    on_beta: Progress | None = None,
) -> Estimate:
    """Return log Z: exactly where it can be counted, else between bounds, unless a method is given.

    The methods are those of `METHODS`: `"exact"`, `"sandwich"`, `"tempering"`, `"bounds"`, `"bethe"` and
    `"perturb-and-map"`. Each says what it rests on, and whether to trust it. `n_chains` chains take `n_betas`
    temperatures between `reference` (a field on the data layer, best `units.fitted_field(data)`; the biases unless
    given) and the model, and `n_steps` steps there. `samples` are states that the model should know, data or persistent
    chains: chains start there, too, so that a mode is found that no annealing reaches.
    """
    check_eager(model)
    check_generator(generator)
    model = model.machine if isinstance(model, ScaleMixture) else model  # scales are normalized already
    if method is None:
        n_states = counted_layers(model)[1] if isinstance(model, BoltzmannMachine) else None
        method = "exact" if n_states is not None and n_states <= MAX_STATES else "sandwich"
    if method not in METHODS:
        raise ValueError(f"There is no method {method!r} to log Z. Use one of {', '.join(METHODS)}.")
    return METHODS[method](model, Effort(n_chains, n_betas, n_steps, reference, samples, generator, on_beta))
