"""Is the chain good: effective sample size, R-hat and autocorrelation of draws `(n_chains, n_draws, *shape)`.

Vehtari, Gelman, Simpson, Carpenter and Bürkner, "Rank-normalization, folding, and localization: an improved R-hat for
assessing convergence of MCMC" (2021); the numbers agree with those of ArviZ. Each element of `shape` is one quantity
and gets one number, in float64. A quantity whose draws are all equal (a pixel that is always off) has
`effective_sample_size` = the number of draws, `split_r_hat` = 1 and `autocorrelation_time` = 1: its mean has no
Monte-Carlo error, and draws that do not move cannot tell a constant from a stuck sampler.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

_BLOCK = 2**22  # elements worked on at a time: 32 MB of float64 for each temporary


def effective_sample_size(draws: Tensor) -> Tensor:
    """Bulk effective sample size, `S / τ` with τ the autocorrelation time of the rank-normalized split chains.

    Section 4 of Vehtari et al. 2021: ranks over all S draws become normal scores (eq. 14), then section 3.2 with the
    initial monotone sequence of Geyer (1992). Equals `arviz.ess(method="bulk")`. Chains stuck at different places
    count for about one draw each. For the error of a mean use `S / autocorrelation_time(draws)`.

    >>> effective_sample_size(torch.zeros(4, 100, 2))
    tensor([400., 400.], dtype=torch.float64)
    """

    def columns(x: Tensor) -> Tensor:
        x = _split(x)
        return x[0].numel() / torch.where(_constant(x), 1.0, _integrated_time(_normal_scores(x)))

    return _for_each_quantity(draws, columns)


def split_r_hat(draws: Tensor, *, rank_normalized: bool = True) -> Tensor:
    """Potential scale reduction `R̂ = √(((n-1)/n · W + B/n) / W)` of chains cut in halves; above 1.01, sample longer.

    Section 3 of Vehtari et al. 2021; B is the variance between and W within the half chains of n draws. Rank-normalized
    (section 4) it is the larger of the R̂ of the normal scores of x and of |x - median|, so that it also sees chains
    of different scale and heavy tails: `arviz.rhat`. Otherwise R̂ of x itself: `arviz.rhat(method="split")`.
    It is `inf` when every half chain is constant and they differ. One chain is enough: its two halves are compared.

    >>> split_r_hat(torch.arange(2.0)[:, None].expand(2, 100))  # two chains stuck at 0 and at 1
    tensor(inf, dtype=torch.float64)
    """

    def columns(x: Tensor) -> Tensor:
        x = _split(x)
        if rank_normalized:
            folded = (x - _median(x)).abs()
            r_hat = torch.fmax(_r_hat(_normal_scores(x)), _r_hat(_normal_scores(folded)))
        else:
            r_hat = _r_hat(_scaled(x))
        return torch.where(_constant(x), 1.0, r_hat)

    return _for_each_quantity(draws, columns)


def autocorrelation_time(draws: Tensor) -> Tensor:
    """Integrated autocorrelation time `τ = 1 + 2 Σ_t ρ_t`: for the mean, S draws are worth S/τ independent ones.

    Section 3.2 of Vehtari et al. 2021, on the split chains: `S / arviz.ess(method="mean")`. As there, τ is never
    below `1 / log₁₀ S`, which bounds what antithetic chains can claim.

    >>> autocorrelation_time(torch.zeros(1, 8))
    tensor(1., dtype=torch.float64)
    """

    def columns(x: Tensor) -> Tensor:
        x = _split(x)
        return torch.where(_constant(x), 1.0, _integrated_time(_scaled(x)))

    return _for_each_quantity(draws, columns)


def autocorrelation(draws: Tensor) -> Tensor:
    """Autocorrelation at lags t = 0..n-1 over all chains, `ρ_t = 1 - (W - mean_m s²_m ρ_{t,m}) / var⁺`.

    Section 3.2 of Vehtari et al. 2021, with `var⁺ = (n-1)/n · W + B/n` and `ρ_0 = 1`. The chains share one mean in
    var⁺, so chains that do not meet show ρ_t near 1, however quickly each moves. Constant draws: 1 at lag 0, then 0.
    The result is `(n_draws, *shape)`.

    >>> autocorrelation(torch.tensor([[1.0, -1.0, 1.0, -1.0]])).shape
    torch.Size([4])
    """

    def columns(x: Tensor) -> Tensor:
        impulse = torch.eye(1, x.shape[-1], dtype=x.dtype, device=x.device)
        return torch.where(_constant(x)[:, None], impulse, _pooled_autocorrelation(_scaled(x))).T

    return _for_each_quantity(draws, columns)


def _for_each_quantity(draws: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply `function`, which maps (columns, n_chains, n_draws) to (*lead, columns), to blocks of quantities."""
    if not isinstance(draws, Tensor):
        raise TypeError(
            f"`draws` must be a torch.Tensor. Got {type(draws).__name__}. Convert it with torch.as_tensor(draws)."
        )
    if draws.is_complex():
        raise TypeError(f"`draws` must be real. Got {draws.dtype}. Look at draws.real and draws.imag one by one.")
    if draws.ndim < 2 or draws.shape[0] < 1 or draws.shape[1] < 4:
        raise ValueError(
            "`draws` must have shape (n_chains, n_draws, *shape) with at least 1 chain and 4 draws. "
            f"Got {tuple(draws.shape)}. Keep more draws; for a single chain add an axis with draws[None]."
        )
    n_chains, n_draws, *shape = draws.shape
    flat = draws.detach().reshape(n_chains, n_draws, math.prod(shape))
    parts = []
    for block in flat.split(max(1, _BLOCK // (n_chains * n_draws)), dim=-1):
        x = block.to(torch.float64).permute(2, 0, 1).contiguous()
        if not x.isfinite().all():
            raise ValueError(
                "`draws` must be finite. Got NaN or infinite values. "
                "The sampler diverged: shorten its step, or drop the draws from there on."
            )
        parts.append(function(x))
    result = torch.cat(parts, dim=-1)
    return result.reshape([*result.shape[:-1], *shape])


def _split(x: Tensor) -> Tensor:
    """Cut every chain in two halves; an odd middle draw is dropped."""
    half = x.shape[-1] // 2
    return torch.cat([x[..., :half], x[..., -half:]], dim=-2)


def _constant(x: Tensor) -> Tensor:
    return x.amax((-2, -1)) == x.amin((-2, -1))


def _scaled(x: Tensor) -> Tensor:
    """Bring the largest absolute value to 1, so that no square overflows or vanishes."""
    largest = x.abs().amax((-2, -1), keepdim=True)
    return x / torch.where(largest > 0, largest, 1.0)


def _median(x: Tensor) -> Tensor:
    ordered = x.flatten(-2).sort(-1).values
    n = ordered.shape[-1]
    return ((ordered[..., (n - 1) // 2] + ordered[..., n // 2]) / 2)[:, None, None]


def _normal_scores(x: Tensor) -> Tensor:
    """`z = Φ⁻¹((r - 3/8) / (S + 1/4))` with r the average rank among all S draws, eq. 14 of Vehtari et al. 2021."""
    flat = x.flatten(-2)
    ordered = flat.sort(-1).values
    rank = (torch.searchsorted(ordered, flat) + torch.searchsorted(ordered, flat, right=True) + 1) / 2.0
    scores: Tensor = torch.special.ndtri((rank.to(x.dtype) - 0.375) / (flat.shape[-1] + 0.25))
    return scores.view_as(x)


def _r_hat(x: Tensor) -> Tensor:
    """R̂ of the chains as they are; NaN where all draws are equal."""
    n = x.shape[-1]
    still = x.amax(-1) == x.amin(-1)
    mean = torch.where(still, x[..., 0], x.mean(-1))  # exact for a constant chain, where a mean may round
    within = torch.where(still, 0.0, x.var(-1)).mean(-1)
    between = n * torch.where(mean.amax(-1) == mean.amin(-1), 0.0, mean.var(-1))
    return ((between / within + n - 1) / n).sqrt()


def _pooled_autocorrelation(x: Tensor) -> Tensor:
    """ρ_t of section 3.2 of Vehtari et al. 2021: (columns, chains, n) to (columns, n)."""
    n_chains, n = x.shape[-2:]
    mean = x.mean(-1, keepdim=True)
    power = torch.fft.rfft(x - mean, n=2 * n).abs().square().mean(-2)  # zero padding: no wrap-around
    autocovariance: Tensor = torch.fft.irfft(power, n=2 * n)[..., :n] / n
    within = autocovariance[..., :1] * n / (n - 1)
    total = autocovariance[..., :1] + (mean.var(-2) if n_chains > 1 else 0.0)
    rho = 1 - (within - autocovariance) / total
    rho[..., 0] = 1.0
    return rho


def _integrated_time(x: Tensor) -> Tensor:
    """τ by Geyer's initial monotone sequence: pairs ρ_2k + ρ_2k+1 up to the first not positive, made to decrease."""
    n_chains, n = x.shape[-2:]
    rho = _pooled_autocorrelation(x)
    last = max((n - 3) // 2, 0)
    pairs = rho[:, : 2 * last + 2].unflatten(-1, (last + 1, 2)).sum(-1)
    ended = pairs <= 0
    stop = torch.where(ended.any(-1), ended.int().argmax(-1), last)[:, None]
    before = torch.arange(last + 1, device=x.device) < stop
    head = torch.where(before, pairs.cummin(-1).values, 0.0).sum(-1)
    even = rho.gather(-1, 2 * stop)  # an odd-length remainder that lowers the variance of the estimate
    tail = torch.where((even > 0) | (pairs.gather(-1, stop) >= 0), even, 0.0).squeeze(-1)
    return (2 * head + tail - 1).clamp_min(1 / math.log10(n_chains * n))
