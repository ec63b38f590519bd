"""How probable is the data at least, under a deep belief network."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.models import DBN, RBM
from harmonium.partition import log_z as estimate_log_z
from harmonium.partition.proper import check_proper
from harmonium.types import Estimate
from harmonium.units import MaxPooled, Units

_ROWS = 1024


@torch.no_grad()
def dbn_bound(
    dbn: DBN,
    x: Tensor,
    *,
    n_samples: int = 10,
    log_z: Estimate | None = None,
    generator: torch.Generator | None = None,
) -> Estimate:
    """Return a lower bound of `log p(v)` of each sample, averaged over draws going up (Salakhutdinov and Murray 2008).

    `log p(v) ≥ E_q[Σ_l (log p(h_{l-1} | h_l) - log q(h_l | h_{l-1})) - F_top(h_{L-1})] - log Z_top`, with q the way up
    and `h_0 = v`; only the top machine needs a log Z. The error is that of `n_samples` draws and of log Z. All levels
    must pass on their own values: units of one kind where machines meet, and no pooling.
    """
    check_bounded(dbn)
    top = dbn[-1]
    z = estimate_log_z(top, generator=generator) if log_z is None else log_z
    x = dbn.visible.encoded(x, like=top.weight).to(top.weight)
    dbn.visible.check_values(x, "x")
    means, errors = [], []
    for rows in x.split(_ROWS):
        draws = torch.stack([_weight(dbn, rows, generator) for _ in range(n_samples if len(dbn) > 1 else 1)])
        means.append(draws.mean(0))
        errors.append(draws.std(0) / math.sqrt(len(draws)) if len(draws) > 1 else torch.zeros_like(draws[0]))
    value, spread = torch.cat(means) - z.value, torch.cat(errors)
    error = (spread.square() + z.error**2).sqrt()
    width = 3 * spread
    note = "; ".join(filter(None, [z.note, "a lower bound of log p(x): hidden layers are drawn going up"]))
    kind = f"{z.kind} bound" if len(dbn) > 1 else z.kind
    lower, upper = value + z.value - z.upper - width, value + z.value - z.lower + width
    return Estimate(
        value, error, lower, upper, kind, ess=z.ess, trusted=z.trusted, note=note if len(dbn) > 1 else z.note
    )


def check_bounded(dbn: DBN) -> None:
    """Raise unless the machines of a network pass on their own values and the top one has a law, as the bound needs."""
    for i in range(1, len(dbn)):
        _check_meeting(dbn[i - 1], dbn[i], i)
    check_proper(dbn[-1])


def _weight(dbn: DBN, v: Tensor, generator: torch.Generator | None) -> Tensor:
    """Return the log weight of one draw going up, `(n,)`, in float64."""
    total = v.new_zeros(len(v), dtype=torch.float64)
    for i, rbm in enumerate(dbn):
        below, above = rbm.layers
        if i == len(dbn) - 1:
            return total - rbm.energy({below: v}).double()
        up = rbm.field(above, {below: v})
        h = rbm.layer(above).sample(up, generator=generator)
        down = rbm.field(below, {above: h})
        total += (_log_probability(rbm.layer(below), down, v) - _log_probability(rbm.layer(above), up, h)).double()
        v = dbn.enter(i + 1, dbn.pass_up(i, h))
    return total


def _log_probability(units: Units, field: Tensor, x: Tensor) -> Tensor:
    """Return `θ·s(x) + log μ(x) - A(θ)` summed over the units."""
    inner = (field * units.statistic(x)).flatten(x.ndim - len(units.shape)).sum(-1)
    return inner + units.total(units.log_base(x) - units.log_partition(field))


def _check_meeting(below: RBM, above: RBM, i: int) -> None:
    kinds = (below.hidden, above.visible)
    same = all(
        len({what(units) for units in kinds}) == 1
        for what in (lambda u: u.bounds(), lambda u: u.support, lambda u: math.prod(u.sites), lambda u: _n_states(u))
    )
    if isinstance(below.hidden, MaxPooled) or not same or not (below.hidden.proper and below.visible.proper):
        raise ValueError(
            f"The bound needs the same values on both sides where machines {i} and {i + 1} meet, of units that have a "
            f"base measure. Got hidden={below.hidden!r} below visible={above.visible!r}: what is passed up is pooled, "
            "rescaled, or has no likelihood. Compare samples or reconstructions instead."
        )


def _n_states(units: Units) -> int | None:
    states = units.states()
    return None if states is None else len(states)
