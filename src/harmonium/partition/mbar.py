"""All normalizers of a ladder of temperatures from all samples at once."""

from __future__ import annotations

import torch
from torch import Tensor

_TOLERANCE = 1e-9
_MOST = 2**18  # numbers in the table of samples and laws
_MOST_STEPS, _MOST_HALVINGS = 100, 30


def mbar(slope: Tensor, betas: Tensor) -> Tensor:
    """Return `log Z_k - log Z_0` of laws `p_k ∝ e^{-E_0(x) - β_k U(x)}` (Shirts and Chodera 2008, eq. 11).

    `slope` are the U of samples of each law, `(n_betas, n_samples)`. The multistate estimate solves

        c_k = log Σ_n e^{-β_k U_n} / Σ_j N e^{-c_j - β_j U_n}  over the samples n of all laws,

    the least variance that weights of all samples can have. This is the minimum of the convex function

        Σ_n log Σ_j N e^{-c_j - β_j U_n} + N Σ_k c_k,

    found by Newton's steps from the trapezium rule for `dc/dβ = -⟨U⟩`, each halved until the function falls: where laws
    hardly overlap, a whole step goes far beyond. A sample enters by its U alone, whatever its law: of very many,
    neighbors in U are merged, with their mean and their number m_n as a weight.

    >>> mbar(torch.zeros(2, 3), torch.tensor([0.0, 1.0])).abs().tolist()    # U = 0: all Z are the same
    [0.0, 0.0]
    """
    u, place = _merged(slope.double().flatten(), max(1, _MOST // len(betas)))
    return _solved(u, place.bincount().double(), betas.double(), _trapezium(slope.double(), betas.double()))


def jackknifed_mbar(slope: Tensor, betas: Tensor, n_groups: int) -> tuple[float, Tensor]:
    """Return `log Z - log Z_0` of the last law by `mbar`, and the jackknife's pseudo-value of each group of chains.

    `slope` is `(n_betas, n_steps, n_chains)`, a group are neighbors among the chains. With c_g the estimate without
    group g, the pseudo-values `n c - (n - 1) c_g` of n groups act like n estimates: their spread over √n is the error.
    """
    u, place = _merged(slope.double().flatten(), max(1, _MOST // len(betas)))
    group = torch.arange(slope.shape[2]) * n_groups // slope.shape[2]
    pair = place.reshape(slope.shape) * n_groups + group
    counts = pair.flatten().bincount(minlength=len(u) * n_groups).reshape(len(u), n_groups).double()
    whole, beta = counts.sum(1), betas.double()
    c = _solved(u, whole, beta, _trapezium(slope.flatten(1).double(), beta))
    without = torch.stack([_solved(u, whole - own, beta, c)[-1] for own in counts.t()])
    return c[-1].item(), n_groups * c[-1] - (n_groups - 1) * without


def _solved(u: Tensor, count: Tensor, beta: Tensor, start: Tensor) -> Tensor:
    """Return c for the values u, each of which stands for so many samples, as many of every law."""
    n = count.sum() / len(beta)
    exponent, count, log_n, c = -u[:, None] * beta, count[:, None], n.log(), start
    value, weights = _at(exponent, count, log_n, c)
    for _ in range(_MOST_STEPS):
        n_weights = weights * n  # (n_samples, n_betas)
        gradient = n - (n_weights * count).sum(0)
        if gradient.abs().max() <= _TOLERANCE * n * len(beta) ** 2:
            break
        hessian = torch.diag((count * n_weights).sum(0)) - n_weights.t() @ (count * n_weights)
        step = torch.cat([c.new_zeros(1), torch.linalg.lstsq(hessian[1:, 1:], gradient[1:, None]).solution[:, 0]])
        for _ in range(_MOST_HALVINGS):
            new_value, new_weights = _at(exponent, count, log_n, c - step)
            if new_value <= value - 1e-4 * (gradient @ step):
                break
            step = step / 2
        else:  # all that is left is rounding
            break
        c, value, weights = c - step, new_value, new_weights
    return c


def _at(exponent: Tensor, count: Tensor, log_n: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Return the convex function at c and the weights `W_nk = e^{-c_k - β_k U_n} / Σ_j N e^{-c_j - β_j U_n}`."""
    own = exponent - c
    mixture = own.logsumexp(1, keepdim=True) + log_n
    return (count * mixture).sum() + log_n.exp() * c.sum(), (own - mixture).exp()


def _trapezium(slope: Tensor, beta: Tensor) -> Tensor:
    mean = slope.mean(1)
    return torch.cat([beta.new_zeros(1), -(beta.diff() * (mean[1:] + mean[:-1]) / 2).cumsum(0)])


def _merged(u: Tensor, n_most: int) -> tuple[Tensor, Tensor]:
    """Return at most about `n_most` means of neighbors in the order of size, and for each of u its place among them."""
    n_each = -(-len(u) // n_most)
    place = torch.empty(len(u), dtype=torch.int64)
    place[u.argsort()] = torch.arange(len(u)) // n_each
    count = place.bincount().to(u)
    return torch.zeros_like(count).index_add_(0, place, u) / count, place
