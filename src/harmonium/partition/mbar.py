"""All normalizers of a ladder of temperatures from all samples at once."""

from __future__ import annotations

import torch
from torch import Tensor

_TOLERANCE = 1e-9
_MOST = 2**20  # numbers in the table of samples and laws


def mbar(slope: Tensor, betas: Tensor, start: Tensor | None = None) -> Tensor:
    """Return `log Z_k - log Z_0` of laws `p_k ∝ e^{-E_0(x) - β_k U(x)}` (Shirts and Chodera 2008, eq. 11).

    `slope` are the U of samples of each law, `(n_betas, n_samples)`. The multistate estimate solves

        c_k = log Σ_n e^{-β_k U_n} / Σ_j N e^{-c_j - β_j U_n}  over the samples n of all laws,

    the least variance that weights of all samples can have. It starts from the trapezium rule for `dc/dβ = -⟨U⟩` and
    takes Newton's steps on the gradient `N (1 - Σ_n W_nk)` of the convex function behind it, or a round of the equation
    as it stands where such a step would make the gradient larger. A sample enters by its U alone, whatever its law: of
    very many, neighbors in U are merged, with their mean and their number m_n as a weight.

    >>> mbar(torch.zeros(2, 3), torch.tensor([0.0, 1.0])).abs().tolist()    # U = 0: all Z are the same
    [0.0, 0.0]
    """
    u, beta, n = slope.double(), betas.double(), slope.shape[1]
    merged, count = _merged(u.flatten(), max(1, _MOST // len(beta)))
    exponent, count = -merged[:, None] * beta, count[:, None]
    log_n = torch.full_like(beta, n).log()
    if start is None:
        mean = u.mean(1)
        start = torch.cat([beta.new_zeros(1), -(beta.diff() * (mean[1:] + mean[:-1]) / 2).cumsum(0)])
    c = start.double()
    gradient, weights = _gradient(exponent, count, log_n, c)
    for _ in range(100):
        if gradient.abs().max() <= _TOLERANCE * u.numel() * len(beta):
            break
        n_weights = weights * n  # (n_samples, n_betas)
        hessian = torch.diag((count * n_weights).sum(0)) - n_weights.t() @ (count * n_weights)
        step = torch.linalg.lstsq(hessian[1:, 1:], gradient[1:, None]).solution[:, 0]
        new = c - torch.cat([step.new_zeros(1), step])
        new_gradient, new_weights = _gradient(exponent, count, log_n, new)
        if not bool(new_gradient.isfinite().all()) or new_gradient.norm() >= gradient.norm():
            new = _updated(exponent, count, log_n, c)
            new_gradient, new_weights = _gradient(exponent, count, log_n, new)
        c, gradient, weights = new, new_gradient, new_weights
    return c - c[0]


def _merged(u: Tensor, n_most: int) -> tuple[Tensor, Tensor]:
    """Return at most about `n_most` values and how many of u each stands for, its neighbors in the order of size."""
    n_each = -(-len(u) // n_most)
    if n_each == 1:
        return u, torch.ones_like(u)
    ordered, place = u.sort().values, torch.arange(len(u)) // n_each
    count = place.bincount().to(u)
    return torch.zeros_like(count).index_add_(0, place, ordered) / count, count


def _updated(exponent: Tensor, count: Tensor, log_n: Tensor, c: Tensor) -> Tensor:
    mixture = (exponent + log_n - c).logsumexp(1, keepdim=True)
    new = (exponent - mixture + count.log()).logsumexp(0)
    return new - new[0]


def _gradient(exponent: Tensor, count: Tensor, log_n: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Return `N (1 - Σ_n m_n W_nk)` and the weights `W_nk = e^{-c_k - β_k U_n} / Σ_j N e^{-c_j - β_j U_n}`."""
    mixture = (exponent + log_n - c).logsumexp(1, keepdim=True)
    weights = (exponent - c - mixture).exp()
    return log_n.exp() * (1 - (weights * count).sum(0)), weights
