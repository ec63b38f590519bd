"""Laws without hidden units, to which a likelihood is compared: a single Gaussian, and independent binary units."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def gaussian_log_density(x: Tensor, train: Tensor, *, ridge: float = 0.0) -> Tensor:
    """Return `log N(x; m, S + ridge I)` with the mean m and the covariance S of the training samples, in nats."""
    known = train.double().cpu().flatten(1)
    spread = torch.cov(known.T).reshape(known.shape[1], -1) + ridge * torch.eye(known.shape[1], dtype=torch.float64)
    factor = torch.linalg.cholesky(spread)
    distance = torch.linalg.solve_triangular(factor, (x.double().cpu().flatten(1) - known.mean(0)).T, upper=False)
    log_volume = factor.diagonal().log().sum() + known.shape[1] / 2 * math.log(2 * math.pi)
    return -distance.square().sum(0) / 2 - log_volume


def independent_log_likelihood(x: Tensor, train: Tensor) -> Tensor:
    """Return `Σ_i log p_i(x_i)` of independent binary units, `p_i = (n_i + ½)/(n + 1)` from n_i ones in n samples.

    >>> from harmonium.evaluation.baselines import independent_log_likelihood
    >>> independent_log_likelihood(torch.ones(1, 1), torch.tensor([[0.0], [1.0]])).exp().item()
    0.5
    """
    p = (train.double().sum(0) + 0.5) / (len(train) + 1)
    return torch.where(x > 0.5, p, 1 - p).log().flatten(1).sum(1)
