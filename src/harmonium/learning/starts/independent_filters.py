"""A start for spikes and slabs: directions along which the data are most independent."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.draws import draw_normal
from harmonium.models import SpikeSlabRBM

_STEPS = 40


@torch.no_grad()
def independent_filters(
    machine: SpikeSlabRBM, x: Tensor, open_share: float = 0.3, *, generator: torch.Generator | None = None
) -> None:
    """Start spikes at directions of their own: `W = s σ A` with the independent components A of data, `s = limit`.

    The columns of A have length 1 and are all but orthogonal, so that spikes vary apart: one opens with the probability
    `open_share`, `c_j = log-odds + ½ width log(1 - s²)`, and multiplies the variance along its filters by `1/(1 - s²)`.
    The slabs of a spike are directions that are large together (independent subspaces, Hyvärinen and Hoyer 2000). Fewer
    filters than values take the longest tails. A scale that varies from row to row ties all directions: take it out
    first, with `ScaleMixture.divided`.
    """
    n = math.prod(machine.layer("visible").shape)
    n_filters = machine.n_spikes * machine.width
    if n_filters > n:
        raise ValueError(f"There are {n} independent directions for {n_filters} filters. Use fewer spikes or slabs.")
    sigma = machine.layer("visible").sigma.reshape(-1, 1)  # type: ignore[operator]
    rows = x.reshape(-1, n).to(machine.weight) / sigma.t()
    filters = independent_components(rows, generator=generator)
    responses = (rows - rows.mean(0)) @ filters
    kurtosis = responses.pow(4).mean(0) / responses.square().mean(0).square()
    longest = kurtosis.argsort(descending=True)[:n_filters]
    chosen = filters[:, longest[gathered(responses[:, longest].abs(), machine.width)]]
    machine.weight.copy_(machine.limit * sigma * chosen / chosen.norm(dim=0))
    machine.project()
    closed = math.log(open_share / (1 - open_share)) + machine.width / 2 * math.log(1 - machine.limit**2)
    machine.graph.biases["spike"].bias.fill_(closed)


def gathered(x: Tensor, width: int) -> list[int]:
    """Return the columns of x in an order in which each `width` of them in a row are correlated, the closest first."""
    close = torch.corrcoef(x.t()).fill_diagonal_(-math.inf)
    order: list[int] = []
    while len(order) < x.shape[1] and width > 1:
        group = [int(close.amax(0).argmax())]
        while len(group) < width:
            close[:, group] = -math.inf  # taken: nobody comes to it any more
            group.append(int(close[group].mean(0).argmax()))
        close[:, group] = close[group] = -math.inf
        order += group
    return order or list(range(x.shape[1]))


def independent_components(x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Return directions A, one a column, along which `xA` are as independent as can be, of variance 1.

    Whitened data times a rotation B, `B ← E[x g(xB)] - B E[g'(xB)]` with `g = tanh`, made orthogonal again at each step
    (symmetric FastICA, Hyvärinen 1999).
    """
    centered = x - x.mean(0)
    values, vectors = torch.linalg.eigh(centered.t() @ centered / len(x))
    whitening = vectors @ torch.diag(values.clamp_min(values[-1] * 1e-6).rsqrt()) @ vectors.t()
    white = centered @ whitening
    rotation = torch.linalg.qr(draw_normal(whitening, generator=generator))[0]
    for _ in range(_STEPS):
        g = (white @ rotation).tanh()
        left, _, right = torch.linalg.svd(white.t() @ g / len(x) - rotation * (1 - g.square()).mean(0))
        rotation = left @ right
    return whitening @ rotation
