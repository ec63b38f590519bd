"""A start for an RBM whose hidden layer is one category: the mixture that it is, fitted by EM."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.draws import draw_categorical
from harmonium.models import RBM
from harmonium.models.observed import counted_log_z, draw_observed, observed_energy
from harmonium.units import Categorical, Gaussian, Mixed, MultivariateGaussian, Units

_N_LLOYD, _PRIOR, _FLOOR = 10, 1.0, 1e-6


@torch.no_grad()
def start_mixture(
    rbm: RBM,
    x: Tensor,
    *,
    shrinkage: float = 0.0,
    n_steps: int = 30,
    n_starts: int = 2,
    generator: torch.Generator | None = None,
) -> None:
    """Set an RBM with hidden units `Categorical(1, M)` to a mixture of M components fitted to rows x.

    Such an RBM *is* a mixture: `p(z = k) ∝ e^{c_k + A(b + W_k)}`, `p(x | z = k)` the units under the field `b + W_k`.
    EM (Dempster, Laird and Rubin 1977): shares r of each row in the components, `π_k = Σ r/n` and means m_k, then
    `b + W_k = link(m_k)`, `c_k = log π_k - A(b + W_k)`, and the covariance within components for the spread, shrunk
    towards independent columns by `shrinkage`. One row of the overall mean is added to each component, and
    one of the law at zero field to that mean. EM starts from
    k-means, `n_starts` times; the best likelihood stays. Unknown values (NaN) are means at first, and after a third of
    the steps drawn anew in each (stochastic EM; Celeux and Diebolt 1985).
    """
    if not isinstance(rbm.hidden, Categorical) or rbm.hidden.n != 1:
        raise ValueError(f"The hidden layer must be Categorical(1, M) to start as a mixture. Got {rbm.hidden!r}.")
    x = x.to(rbm.weight)
    holes = x.isnan()
    has_holes = bool(holes.any())
    filled = torch.where(holes, x.nanmean(0).nan_to_num(), x)
    best, kept = -torch.inf, dict[str, Tensor]()
    for _ in range(n_starts if rbm.hidden.classes > 1 else 1):
        rows, share = filled, k_means(filled, rbm.hidden.classes, generator=generator)
        for i in range(n_steps):
            maximize(rbm, rows, share, shrinkage)
            if has_holes and i >= n_steps // 3:
                rows = draw_observed(rbm, x, generator=generator)
            share = rbm.hidden_mean(rows).squeeze(-2)
        found = float(-observed_energy(rbm, x).mean() - counted_log_z(rbm))
        if found > best or not kept:
            best, kept = found, {name: value.clone() for name, value in rbm.state_dict().items()}
    rbm.load_state_dict(kept)


def maximize(rbm: RBM, x: Tensor, share: Tensor, shrinkage: float) -> None:
    """Set the parameters to the mixture whose components hold the given shares of the rows (the step M)."""
    n_rows, n = share.sum(0), len(x)
    average = (x.sum(0) + rbm.visible.mean(x.new_zeros(rbm.visible.shape))) / (n + 1)  # no level has probability 0
    sums = share.mT @ x
    means = (sums + _PRIOR * average) / (n_rows + _PRIOR)[:, None]
    weight = (n_rows + 1) / (n + len(n_rows))
    visible = rbm.visible
    parts: list[Units] = list(visible.parts) if isinstance(visible, Mixed) else [visible]  # type: ignore[arg-type]
    start = 0
    for part in parts:
        size = math.prod(part.shape)
        if isinstance(part, MultivariateGaussian | Gaussian):
            block = slice(start, start + size)
            m, s, v = means[:, block], sums[:, block], x[:, block]
            cross = s.mT @ m
            within = (v.mT @ v - cross - cross.mT + (m * n_rows[:, None]).mT @ m) / n
            own = within.diagonal().clamp_min(0) + _FLOOR * v.var(0, correction=0) + _FLOOR**2
            if isinstance(part, Gaussian):
                part.log_sigma.copy_(own.sqrt().clamp_min(part.floor).log().reshape(part.shape))
            else:
                part.set_covariance((1 - shrinkage) * (within - within.diagonal().diag()) + own.diag())
        start += size
    field = visible.link(means)
    bias = weight @ field
    rbm.visible_bias.copy_(bias)
    rbm.weight.copy_((field - bias).mT)
    rbm.hidden_bias.copy_((weight.log() - visible.total(visible.log_partition(field))).reshape(rbm.hidden.shape))


def k_means(x: Tensor, n: int, *, generator: torch.Generator | None = None) -> Tensor:
    """Return the cluster of each row as one-hot vectors `(n_rows, n)`: k-means from far-apart rows (Arthur and
    Vassilvitskii 2007), each value in units of its spread."""
    z = (x - x.mean(0)) / x.std(0, correction=0).clamp_min(1e-6)
    distance = torch.full((len(z),), torch.inf, dtype=z.dtype)
    first = draw_categorical(torch.ones(1, len(z), dtype=z.dtype), generator=generator).argmax(-1)
    centers = z[first]
    for _ in range(n - 1):
        distance = torch.minimum(distance, (z - centers[-1]).square().sum(1))
        odds = (distance + 1e-12)[None]
        centers = torch.cat([centers, z[draw_categorical(odds, generator=generator).argmax(-1)]])
    share = torch.zeros(len(z), n, dtype=z.dtype)
    for _ in range(_N_LLOYD):
        nearest = torch.cdist(z, centers).argmin(1)
        share = torch.nn.functional.one_hot(nearest, n).to(z.dtype)
        sizes = share.sum(0)
        centers = torch.where(sizes[:, None] > 0, (share.mT @ z) / sizes.clamp_min(1)[:, None], centers)
    return share
