"""Copies of chains in proportion to their weights."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.draws import draw_uniform


def resample(log_weights: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Return the numbers of as many chains, each drawn in proportion to its weight, with one uniform number for all.

    A comb of n equally spaced teeth laid over the cumulative weights (systematic resampling): a chain of share p is
    taken ⌊np⌋ or ⌈np⌉ times.

    >>> resample(torch.tensor([0.0, 100.0, 0.0])).tolist()
    [1, 1, 1]
    """
    n = len(log_weights)
    share = (log_weights - log_weights.logsumexp(0)).exp().cumsum(0)
    comb = (torch.arange(n, dtype=share.dtype, device=share.device) + draw_uniform(share[:1], generator=generator)) / n
    return torch.searchsorted(share, comb * share[-1]).clamp_max(n - 1)


def effective_size(log_weights: Tensor) -> float:
    """Return the effective sample size `(Σw)²/Σw²`: on how many chains a weighted mean rests.

    >>> round(effective_size(torch.tensor([0.0, 0.0, -100.0])), 6)
    2.0
    """
    return (2 * log_weights.logsumexp(0) - (2 * log_weights).logsumexp(0)).exp().item()
