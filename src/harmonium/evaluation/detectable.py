"""What a two-sample test could have seen: the smallest planted difference that it finds four times out of five."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from harmonium.draws import draw_normal, draw_permutation, draw_uniform
from harmonium.evaluation.two_sample import Statistic, energy_distance, permuted_values

Plant = Callable[..., Tensor]
"""`plant(y, size, generator=…)` makes a sample differ by so much; at size 0 it is left as it is."""

LEVEL, POWER = 0.05, 0.8
_N_DEALS = 4  # samples whose permutations give the critical value
_N_PERMUTATIONS = 199
_N_HALVINGS = 6


def smallest_detectable(
    x: Tensor,
    plant: Plant,
    largest: float,
    *,
    n: int,
    m: int,
    statistic: Statistic = energy_distance,
    n_repeats: int = 40,
    generator: torch.Generator | None = None,
) -> float | None:
    """Return the least size at which a test at the level 5 % finds the planted difference with probability 0.8.

    Data x are dealt into two samples of n and m points, `n_repeats` times, the second is changed by `plant`, and the
    share of statistics above the critical value is the power; halving finds the size, with the same deals throughout.
    The critical value is the 95 % quantile over permutations of unchanged samples. None if not even `largest` is found.
    The power at the result has a standard error of `√(0.8·0.2/n_repeats)`, 0.06 unless told otherwise.
    """
    if n + m > len(x):
        raise ValueError(
            f"Two samples of {n} and {m} points cannot be dealt from {len(x)}. Give more data, or ask for less."
        )
    deals = [draw_permutation(len(x), generator=generator)[: n + m] for _ in range(max(n_repeats, _N_DEALS))]
    seeds = [int(draw_permutation(2**20, generator=generator)[0]) for _ in range(n_repeats)]
    dealt = [
        permuted_values(statistic, x[d[:n]], x[d[n:]], _N_PERMUTATIONS, generator=generator) for d in deals[:_N_DEALS]
    ]
    critical = torch.cat(dealt).quantile(1 - LEVEL).item()

    def power(size: float) -> float:
        found = 0
        for deal, seed in zip(deals, seeds, strict=False):
            changed = plant(x[deal[n:]], size, generator=torch.Generator().manual_seed(seed))
            found += float(statistic(x[deal[:n]], changed)) > critical
        return found / n_repeats

    if power(largest) < POWER:
        return None
    low, high = 0.0, largest
    for _ in range(_N_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high


def shifted(y: Tensor, size: float, *, generator: torch.Generator | None = None) -> Tensor:
    """Return points moved by `size` standard deviations of theirs, all in one random direction."""
    flat = y.flatten(1)
    direction = draw_normal(flat[0], generator=generator)
    return (flat + size * flat.std(0) * direction / direction.norm()).reshape(y.shape)


def partly_gaussian(y: Tensor, size: float, *, generator: torch.Generator | None = None) -> Tensor:
    """Return points of which the share `size` is drawn anew from the single Gaussian with their mean and covariance."""
    flat = y.flatten(1).double()
    covariance = torch.cov(flat.T).reshape(flat.shape[1], -1)
    factor = torch.linalg.cholesky(covariance + 1e-9 * covariance.diagonal().mean() * torch.eye(len(covariance)))
    noise = draw_normal(flat, generator=generator) @ factor.T + flat.mean(0)
    anew = draw_uniform(flat[:, :1], generator=generator) < size
    return torch.where(anew, noise, flat).to(y).reshape(y.shape)
