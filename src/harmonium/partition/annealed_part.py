"""The weight of a part of all states, annealed up and down."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from harmonium import workers
from harmonium.partition.ais import Progress, from_weights, melt, reversed_estimate
from harmonium.partition.base import Path
from harmonium.partition.bennett import bennett
from harmonium.partition.path import PathPoint
from harmonium.partition.shared import everyone, own, part_of_chains
from harmonium.samplers.resample import resample
from harmonium.types import Estimate, State

Inside = Callable[[State], Tensor]
"""Says of each chain whether its state is in the part that is its group's."""

FEWEST_INSIDE = 8
"""The fewest chains in a part from which it is estimated."""


class Annealed(NamedTuple):
    """Chains that went up a path: its temperatures, their log weights, and where they ended."""

    path: Path
    betas: Tensor
    up: Tensor
    ends: PathPoint


def melt_parts(
    run: Annealed,
    inside: Inside | None,
    log_z0: Tensor,
    n_steps: int,
    *,
    generator: torch.Generator | None = None,
    on_beta: Progress | None = None,
) -> tuple[list[Estimate | None], PathPoint]:
    """Return `log Z_B = log Σ_{x ∈ B} e^{-F(x)}` for the part B of each group of chains, and their states in it.

    With q the share of chains that end in B, and chains in it carried down again, weights up and down have the means

        E[w_up 1_B] = Z_B/Z_0,   E[w_up | B] = Z_B/(q Z_0),   E[w_down] = q Z_0/Z_B  from `x ~ p(x | B)`,

    so that up is a lower bound of log Z_B on average, down an upper one, and Bennett's estimate lies between. Chains
    are resampled in B by their weights and run on for `n_steps` at β = 1, where a step out of B is not taken: for steps
    that are reversible, as those of two layers, this leaves `p(x | B)` as it is. A part that fewer than 8 chains reach
    has no estimate. Where `inside` is None, B is all there is.
    """
    size = len(run.up) // len(log_z0)
    everywhere = torch.ones(len(run.up), dtype=torch.bool, device=run.up.device)
    within = (everywhere if inside is None else inside(run.ends.state)).split(size)
    index = []
    for i, (up, found) in enumerate(zip(run.up.split(size), within, strict=True)):
        some = (
            resample(up.masked_fill(~found, -torch.inf), generator=generator)
            if bool(found.any())
            else torch.arange(size)
        )
        index.append(some + i * size)
    point = run.path.point({name: x[torch.cat(index)] for name, x in run.ends.state.items()})
    part = part_of_chains(run.path, len(point.linear))
    with workers.dividing(part):
        point = own(run.path, point, part)
        for _ in range(n_steps):
            new = run.path.advance(point, 1.0, generator=generator)
            point = new if inside is None else _confined(run.path, point, new, inside)
    point = everyone(run.path, point, part)
    down = melt(run.path, run.betas, point, generator=generator, on_beta=on_beta).split(size)
    parts = zip(run.up.split(size), within, down, log_z0.tolist(), strict=True)
    few = min(FEWEST_INSIDE, size / 2)
    whole = inside is None
    return [_estimate(*part, whole=whole) if int(part[1].sum()) >= few else None for part in parts], point


def _confined(path: Path, point: PathPoint, new: PathPoint, inside: Inside) -> PathPoint:
    """Return the new points; chains that would leave their part stay where they are."""
    stays = inside(new.state)
    if bool(stays.all()):
        return new
    state = {
        name: torch.where(stays.reshape(-1, *(1,) * (x.ndim - 1)), x, point.state[name])
        for name, x in new.state.items()
    }
    return path.point(state)


def _estimate(up: Tensor, inside: Tensor, down: Tensor, log_z0: float, *, whole: bool) -> Estimate:
    """Return the estimate of a part, `[lower, upper]` never narrower than three of its own errors.

    If all of n chains end in it, one in n may yet not: the share has that error.
    """
    n, share = len(up), inside.double().mean().item()
    low = from_weights(up.masked_fill(~inside, -torch.inf), log_z0, "ais")
    high = reversed_estimate(down, log_z0 + math.log(share))
    value, error = bennett(up[inside], down)
    value += log_z0 + math.log(share)
    of_share = 0.0 if whole else (1 - share + 1 / n) / (share * n)
    above = 3 * math.hypot(high.error, math.sqrt(of_share)) if math.isfinite(high.error) else high.upper - high.value
    error = math.hypot(error, math.sqrt(of_share))
    lower, upper = min(low.lower, value - 3 * error), max(high.value + above, value + 3 * error)
    return Estimate(value, error, lower, upper, "sandwich", ess=low.ess)
