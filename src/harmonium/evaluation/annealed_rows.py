"""The likelihood of rows with unknown values, where the hidden layer is too large to go through: by annealing."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.models import RBM
from harmonium.models.observed import MAX_HIDDEN, counted_log_z, observed_energy
from harmonium.partition import log_z as estimate_log_z
from harmonium.partition.ais import FEWEST
from harmonium.types import Estimate

_ROWS = 64


@torch.no_grad()
def rows_log_likelihood(
    rbm: RBM,
    x: Tensor,
    *,
    log_z: Estimate | None = None,
    n_chains: int = 64,
    n_betas: int = 100,
    generator: torch.Generator | None = None,
) -> Estimate:
    """Return `log p(x_o) = log Z(x_o) - log Z` of each row, its unknown values (NaN) summed out, with its error.

    Exactly where the hidden layer can be gone through. Else `Z(x_o)`, the sum over what is hidden or unknown, is
    annealed for each row (Neal 2001): the couplings of the unknown units grow from 0, where all is independent, to
    their full strength; rows without holes need none. `error` has the spread of the weights of a row and that of log Z;
    where the weights of a row rest on fewer than 8 of its chains, that says little, and the scores are not trusted.
    """
    rows = x.to(rbm.weight)
    n = rbm.hidden.n_configurations()
    if n is not None and n <= MAX_HIDDEN:
        value = -observed_energy(rbm, rows).double() - counted_log_z(rbm).double()
        return Estimate(value, 0.0, value, value, "exact", at_least=value, at_most=value)
    rbm.visible.check_known(~rows.isnan(), "x")
    z = estimate_log_z(rbm, generator=generator) if log_z is None else log_z
    value, error = torch.zeros(len(rows), dtype=torch.float64), torch.zeros(len(rows), dtype=torch.float64)
    holes = rows.isnan().flatten(1).any(1)
    whole = (~holes).nonzero().squeeze(1)
    if len(whole):
        value[whole] = -rbm.energy(rows[whole]).double()
    betas = torch.linspace(0.0, 1.0, n_betas + 1).square()
    size = torch.full((len(rows),), float(n_chains), dtype=torch.float64)
    for part in holes.nonzero().squeeze(1).split(_ROWS):
        value[part], error[part], size[part] = _annealed(rbm, rows[part], betas.tolist(), n_chains, generator)
    error = (error.square() + float(z.error) ** 2).sqrt()
    value, n_thin = value - z.value, int((size < min(FEWEST, n_chains / 2)).sum())
    thin = (
        f"the weights of {n_thin} of {len(rows)} rows rest on few of their {n_chains} chains. Use more temperatures "
        "(n_betas) or more chains"
    )
    notes = [z.note] * bool(z.note) + [thin] * bool(n_thin)
    return Estimate(
        value,
        error,
        value - 3 * error,
        value + 3 * error,
        "ais",
        trusted=z.trusted and not n_thin,
        note="; ".join(notes),
    )


def _annealed(
    rbm: RBM, x: Tensor, betas: list[float], n_chains: int, generator: torch.Generator | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `log Z(x_o)` of rows, its error and the effective number of chains over what is unknown and hidden."""
    units, hidden = rbm.visible, rbm.hidden
    unknown = x.isnan()
    weight = rbm.weight.reshape(math.prod(units.shape), -1)
    bias, above = rbm.visible_bias, rbm.hidden_bias
    known = torch.where(unknown, 0.0, units.statistic(x.where(~unknown, 0.0)))
    field = above.flatten() + known.flatten(1) @ weight  # on the hidden layer, from what is known

    def partition(beta: float, pull: Tensor) -> Tensor:
        return hidden.total(hidden.log_partition((field + beta * pull).reshape(*pull.shape[:2], *hidden.shape)))

    start = units.partial_weights(bias[None], x)[0]  # the unknown at β = 0, and what is known
    v = units.sample(bias.expand(n_chains, *x.shape), generator=generator)
    log_w = torch.zeros(n_chains, len(x), dtype=torch.float64)
    pull = torch.where(unknown, units.statistic(v), 0.0).flatten(2) @ weight
    first = partition(0.0, pull)
    for below, beta in zip(betas, betas[1:], strict=False):
        log_w += (partition(beta, pull) - partition(below, pull)).double()
        h = hidden.sample((field + beta * pull).reshape(*pull.shape[:2], *hidden.shape), generator=generator)
        down = (hidden.statistic(h).flatten(2) @ weight.mT).reshape(*pull.shape[:2], *units.shape)
        v = units.sample(bias + beta * down, generator=generator)
        pull = torch.where(unknown, units.statistic(v), 0.0).flatten(2) @ weight
    total = log_w.logsumexp(0) - math.log(n_chains)
    spread = (log_w - total).exp().std(0) / math.sqrt(n_chains)
    size = 1 / (log_w - log_w.logsumexp(0)).exp().square().sum(0)
    return (start + first[0]).double() + total, spread, size
