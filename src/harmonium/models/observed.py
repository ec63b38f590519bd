"""Samples of which a part is known: what is missing is summed out, or drawn given the rest, exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from harmonium.draws import draw_categorical
from harmonium.models.rbm import RBM

MAX_HIDDEN = 2**16
"""The most configurations of the hidden layer that are gone through."""

_NUMBERS = 2**22  # held at once


def hidden_configurations(rbm: RBM) -> Tensor:
    """Return all configurations of the hidden layer, `(n, *shape)`, or raise where there are too many."""
    n = rbm.hidden.n_configurations()
    if n is None or n > MAX_HIDDEN:
        size = "infinitely many" if n is None else f"2^{math.log2(n):.0f}"
        raise ValueError(
            f"The hidden layer {rbm.hidden!r} has {size} configurations, too many to go through ({MAX_HIDDEN:,}). Use "
            "fewer hidden units, or harmonium.sample(..., given=x) and harmonium.log_likelihood, which estimate."
        )
    return rbm.hidden.configurations(torch.arange(n, device=rbm.weight.device)).to(rbm.weight.dtype)


def log_weights(rbm: RBM, h: Tensor) -> Tensor:
    """Return `c·s(h) + log μ(h)` of configurations, `(n,)`: all of their weight that no visible unit has a part in."""
    bias = rbm.hidden.inner(rbm.hidden_bias, h)
    return bias + rbm.hidden.total(rbm.hidden.log_base(h))


def counted_log_z(rbm: RBM) -> Tensor:
    """Return `log Z = log Σ_h e^{c·h} Π_i e^{A_i(b_i + W_i h)}`, differentiable, by going through the hidden layer."""
    h = hidden_configurations(rbm)
    field = rbm.field("visible", {"hidden": h})
    return (log_weights(rbm, h) + rbm.visible.total(rbm.visible.log_partition(field))).logsumexp(0)


def observed_energy(rbm: RBM, x: Tensor) -> Tensor:
    """Return `F(x_o) = -log Σ_h Σ_missing e^{-E(x, h)}` of rows with unknown values (NaN), `(n,)`, differentiable.

    `e^{-F(x_o)} = Σ_h e^{c·h} Π_i e^{A_i}` with `A_i` the log-partition function of what is unknown of unit i
    (`Units.partial_weights`): closed for any pattern of holes once h is gone through. Rows without holes need none.

    >>> rbm = RBM(Bernoulli(3), Bernoulli(2))
    >>> x = torch.tensor([[1.0, 0.0, 1.0], [1.0, torch.nan, 1.0]])
    >>> observed_energy(rbm, x).shape
    torch.Size([2])
    """
    holes = x.isnan().flatten(1).any(1)
    if not bool(holes.any()):
        return rbm.energy(x)
    h = hidden_configurations(rbm)
    field = rbm.field("visible", {"hidden": h})
    free = rbm.weight.new_zeros(len(x))
    whole = (~holes).nonzero().squeeze(1)
    if len(whole):
        free = free.index_put((whole,), rbm.energy(x[whole]))
    outside = log_weights(rbm, h)[:, None]
    for rows in _in_parts(holes.nonzero().squeeze(1), len(h) * math.prod(rbm.visible.shape)):
        inside = rbm.visible.partial_weights(field, x[rows])
        free = free.index_put((rows,), -(outside + inside).logsumexp(0))
    return free


@torch.no_grad()
def posterior(rbm: RBM, x: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the numbers of some rows and `p(h | x_o)` of all configurations for each of them, `(n_rows, n)`."""
    h = hidden_configurations(rbm)
    field, outside = rbm.field("visible", {"hidden": h}), log_weights(rbm, h)[:, None]
    for rows in _in_parts(torch.arange(len(x), device=x.device), len(h) * math.prod(rbm.visible.shape)):
        inside = rbm.visible.partial_weights(field, x[rows])
        yield rows, (outside + inside).softmax(0).T


@torch.no_grad()
def draw_observed(rbm: RBM, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw the unknown values (NaN) of each row given the known ones, exactly: h from `p(h | x_o)`, then the rest.

    Rows that are NaN throughout become samples of the model: no chain has to mix.

    >>> draw_observed(RBM(Bernoulli(3), Bernoulli(2)), torch.full((4, 3), torch.nan)).shape
    torch.Size([4, 3])
    """
    h, drawn = hidden_configurations(rbm), x.clone()
    for rows, share in posterior(rbm, x):
        chosen = h[draw_categorical(share.contiguous(), generator=generator).argmax(-1)]
        field = rbm.field("visible", {"hidden": chosen})
        drawn[rows] = rbm.visible.complete(field, x[rows], generator=generator)
    return drawn


@torch.no_grad()
def observed_hidden_mean(rbm: RBM, x: Tensor) -> Tensor:
    """Return `E[h | x_o]` of rows with unknown values, `(n, *hidden)`: features of rows with holes."""
    h, means = hidden_configurations(rbm), x.new_zeros(len(x), *rbm.hidden.shape)
    for rows, share in posterior(rbm, x):
        means[rows] = (share @ h.flatten(1)).reshape(len(rows), *rbm.hidden.shape)
    return means


def _in_parts(index: Tensor, width: int) -> tuple[Tensor, ...]:
    """Return the numbers of rows in parts whose tables of `width` numbers a row fit in memory."""
    return index.split(max(1, _NUMBERS // max(1, width)))
