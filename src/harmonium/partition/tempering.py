"""log Z from parallel tempering."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.partition.bounds import guaranteed_bounds
from harmonium.partition.effort import Effort
from harmonium.partition.ladders import N_LADDERS, Ladders, climb, first_states
from harmonium.partition.mbar import jackknifed_mbar, mbar
from harmonium.partition.modes import mean_field_modes
from harmonium.partition.path import MachinePath
from harmonium.partition.rungs import rungs, rungs_again
from harmonium.partition.sandwich import judged
from harmonium.partition.schedule import thermodynamic_length
from harmonium.types import EnergyModel, Estimate

FEWEST_TRIPS = 8
"""The fewest round trips, from β = 0 to 1 and back, that all ladders together must make while they measure."""

NEGLIGIBLE = 0.01
"""Halves of the ladders, or of the time, that differ by fewer nats agree, however small their errors."""

_ROUNDS = (1 / 32, 1 / 32, 1 / 16)  # the shares of the effort after which rungs are placed again
_SETTLING = 1 / 8  # the share after which the rungs that stay are left to settle
_FEWEST_STEPS = 20, 150  # of a round, and of what is measured
_N_GROUPS = 16  # of two ladders, which the jackknife leaves out at a time
_STUDENT = 3.6  # of 15 degrees of freedom, where the normal law has 3


def tempering(model: EnergyModel, effort: Effort) -> Estimate:
    """Estimate log Z by chains that trade temperatures, and a multistate estimate from all of them (`mbar`).

    Thirty-two ladders run side by side without knowing of each other, for as many steps in all as a sandwich of the
    same effort takes; half of them start from noise, half from modes of mean field and from `samples`, annealed to
    their rungs from either end. The ladder tunes itself: a pilot says where the first rungs are, and in a quarter of
    the effort, of which nothing is kept, they are placed again three times by what the chains at them have measured
    (`rungs_again`), as many as it takes. The error is the jackknife's over 16 groups of ladders that start alike, so
    that it feels how slowly chains mix; `[lower, upper]` are as wide as 3 standard errors of so few are (Student's law,
    3.6). The estimate is not trusted where the ladders made fewer than 8 round trips, where the two halves, of the
    ladders or of the time, disagree, or where a guaranteed bound contradicts it.
    """
    if not isinstance(model, BoltzmannMachine):
        raise TypeError(f"Tempering needs a BoltzmannMachine. Got {type(model).__name__}. Use method='sandwich'.")
    path, generator = MachinePath(model, effort.reference), effort.generator  # type: ignore[arg-type]
    if path.gating is not None:
        raise ValueError("Tempering does not know layers that gate each other. Use method='sandwich'.")
    given = effort.given(path)
    modes = mean_field_modes(model, given, generator=generator)
    betas = rungs(*thermodynamic_length(path, generator=generator))
    homes = {name: _in_turn([states[name] for states in (*given, modes.states)]) for name in path.kept_layers()}
    state = first_states(path, betas, homes, generator=generator)
    done = 0.0

    def run(share: float, fewest: int) -> Ladders:
        nonlocal done
        n_steps = max(fewest, int(share * 2 * effort.n_chains * effort.n_betas / (N_LADDERS * len(betas))))
        first, done = done, done + share

        def on_step(step: int) -> None:
            if effort.on_beta is not None:
                effort.on_beta(round((first + share * step / n_steps) * effort.n_betas), effort.n_betas)

        return climb(path, betas, state, n_steps, generator=generator, on_step=on_step)

    for share in _ROUNDS:
        seen = run(share, _FEWEST_STEPS[0])
        new = rungs_again(betas, seen.slope[:, seen.slope.shape[1] // 2 :].mean((1, 2)))
        betas, state = new, seen.moved(betas, new)
    state = run(_SETTLING, _FEWEST_STEPS[0]).state
    found = run(1 - sum(_ROUNDS) - _SETTLING, _FEWEST_STEPS[1])
    value, groups = jackknifed_mbar(found.slope, betas, _N_GROUPS)
    error = groups.std().item() / math.sqrt(_N_GROUPS)
    doubts = ladder_doubts(found, betas, value, groups)
    total = value + path.log_z0()
    estimate = Estimate(total, error, total - _STUDENT * error, total + _STUDENT * error, "tempering")
    top = {name: x[-1] for name, x in found.state.items()}
    bounds = guaranteed_bounds(model, modes, [top, *given], generator=generator)
    return judged(estimate, doubts, bounds, effort, next(iter(top.values())).dtype)


def _in_turn(parts: list[Tensor]) -> Tensor:
    """Return rows of all parts by turns, as many of each, shorter ones over and over."""
    n = max(map(len, parts))
    return torch.stack([x[torch.arange(n) % len(x)] for x in parts], 1).flatten(0, 1)


def ladder_doubts(found: Ladders, betas: Tensor, value: float, groups: Tensor) -> list[str]:
    """Return what the ladders, and the pseudo-values of groups of them, say against their estimate, in words."""
    doubts = []
    if found.n_trips < FEWEST_TRIPS:
        doubts.append(
            f"the chains made {found.n_trips} round trips between β = 0 and 1, fewer than {FEWEST_TRIPS}: they do not "
            "forget where they started. Use more steps (n_betas), or a reference fitted to the data"
        )
    noise, homes = groups.chunk(2)
    apart = (noise.mean() - homes.mean()).item()
    if abs(apart) > max(NEGLIGIBLE, _STUDENT * math.sqrt((noise.var() + homes.var()).item() / len(noise))):
        doubts.append(f"ladders that start from noise give {apart:+.2g} nats beside those that start from modes")
    early = mbar(found.slope[:, : found.slope.shape[1] // 2].flatten(1), betas)[-1].item() - value
    if abs(early) > max(NEGLIGIBLE, _STUDENT * groups.std().item() / math.sqrt(len(groups))):
        doubts.append(f"the first half of the steps alone gives {early:+.2g} nats")
    return doubts
