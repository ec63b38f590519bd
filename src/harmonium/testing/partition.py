"""The contract of estimates of log Z: unbiased, covered by their error bars, on the right side of the truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from harmonium.draws import draw_integers, draw_uniform
from harmonium.models import RBM, BoltzmannMachine
from harmonium.partition import ais, exact_log_z
from harmonium.testing.contract import FALSE_ALARM, normal_quantile, random_generator, require
from harmonium.testing.machines import scatter
from harmonium.types import Estimate
from harmonium.units import Bernoulli

Estimator = Callable[..., Estimate]
"""A function of a machine and a keyword `generator` that returns an estimate of log Z."""

MISSES = 0.01
"""The share of three-sigma intervals that may miss the exact value."""


@dataclass(frozen=True)
class Coverage:
    """How estimates compare with exact values: the share of intervals that hold them, and the errors in nats."""

    n: int
    covered: float
    median_error: float
    largest_error: float

    def __str__(self) -> str:
        return (
            f"{self.n} machines: {100 * self.covered:.1f} % of the three-sigma intervals hold the exact log Z; "
            f"median error {self.median_error:.4f} nats, largest {self.largest_error:.3f} nats"
        )


def check_log_z(
    machine: BoltzmannMachine,
    estimator: Estimator | None = None,
    *,
    n_runs: int = 100,
    generator: torch.Generator | None = None,
) -> Coverage:
    """Raise `ContractError` unless repeated estimates of an enumerable machine's log Z keep their promises.

    With `r = Ẑ/Z` of estimates of kind `"ais"`, and `r = Z/Ẑ` of kind `"reverse-ais"`: the mean of r is 1, and log r
    lies below 0 on average (Jensen's inequality), both within a bound with a false-alarm rate of 1e-6; and no more
    intervals `[lower, upper]` miss than chance allows when one in a hundred does. Other kinds are held to the last
    alone. `estimator(machine, generator=…)` is annealed importance sampling with few chains unless given.

    >>> from harmonium.testing import tiny_rbm
    >>> coverage = check_log_z(tiny_rbm("Bernoulli", "Spin"), n_runs=20)
    """
    generator = random_generator(generator=generator)
    exact = exact_log_z(machine).value
    if estimator is None:
        betas = torch.linspace(0, 1, 20).tolist()
        estimates = [ais(machine, n_chains=128, betas=betas, generator=generator) for _ in range(n_runs)]
    else:
        estimates = [estimator(machine, generator=generator) for _ in range(n_runs)]
    kind = estimates[0].kind
    log_r = torch.tensor([estimate.value - exact for estimate in estimates], dtype=torch.float64)
    bound = normal_quantile(FALSE_ALARM)
    if kind in ("ais", "reverse-ais"):
        log_r = -log_r if kind == "reverse-ais" else log_r
        ratio = log_r.exp()
        off = (ratio.mean().item() - 1.0) / (ratio.std().item() / math.sqrt(n_runs) + 1e-12)
        what = "Ẑ/Z" if kind == "ais" else "Z/Ẑ"
        require(
            abs(off) <= bound, f"{kind}: the mean of {what} is {off:.1f} standard errors from 1 (bound {bound:.1f})."
        )
        above = log_r.mean().item() / (log_r.std().item() / math.sqrt(n_runs) + 1e-12)
        require(above <= bound, f"{kind}: the bound is broken by {above:.1f} standard errors (bound {bound:.1f}).")
    missed = sum(not estimate.lower - 1e-9 <= exact <= estimate.upper + 1e-9 for estimate in estimates)
    chance = _binomial_tail(missed, n_runs, MISSES)
    require(
        chance >= FALSE_ALARM, f"{kind}: {missed} of {n_runs} intervals miss the exact value (chance {chance:.1g})."
    )
    return _coverage(estimates, [exact] * n_runs)


def measure_coverage(
    estimator: Estimator, *, n_machines: int = 200, generator: torch.Generator | None = None
) -> Coverage:
    """Compare estimates with exact values on random binary RBMs of at most 14 units a side, weight scale 0.1 to 3."""
    generator = random_generator(generator=generator)
    estimates, truths = [], []
    for _ in range(n_machines):
        machine = random_rbm(generator=generator)
        truths.append(exact_log_z(machine).value)
        estimates.append(estimator(machine, generator=generator))
    return _coverage(estimates, truths)


def random_rbm(*, generator: torch.Generator | None = None) -> RBM:
    """Return a binary RBM in float64: 2 to 14 units a side, parameters `N(0, s²)`, log s uniform from 0.1 to 3."""
    generator = random_generator(generator=generator)
    n_visible, n_hidden = (2 + draw_integers(13, (2,), generator=generator)).tolist()
    share = draw_uniform(torch.empty(1, dtype=torch.float64), generator=generator).item()
    scale = 0.1 * 30.0**share
    return scatter(RBM(Bernoulli(n_visible), Bernoulli(n_hidden)), scale=scale, generator=generator)


def _coverage(estimates: list[Estimate], truths: list[float]) -> Coverage:
    pairs = list(zip(estimates, truths, strict=True))
    errors = torch.tensor([abs(estimate.value - truth) for estimate, truth in pairs], dtype=torch.float64)
    held = sum(estimate.lower - 1e-9 <= truth <= estimate.upper + 1e-9 for estimate, truth in pairs)
    return Coverage(len(pairs), held / len(pairs), errors.median().item(), errors.max().item())


def _binomial_tail(k: int, n: int, p: float) -> float:
    """Return `P(X ≥ k)` of n trials with success probability p."""
    return 1.0 - math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k))
