"""Two laws on the same samples."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.types import Estimate


def paired_difference(first: Estimate, second: Estimate) -> Estimate:
    """Return the mean of `first - second`, log-likelihoods of the same samples, with both of its errors.

    What makes a sample hard is hard for both models and cancels: the error over the samples, `spread`, is that of the
    differences `d_i`, `√(Σ(d_i - d̄)²/(n - 1)n)`, often several times smaller than that of either mean. `error` is that
    of the two log Z, `√(e₁² + e₂²)`, which no number of samples makes smaller.

    >>> from harmonium.evaluation.compare import exactly, paired_difference
    >>> print(paired_difference(exactly(torch.tensor([-1.0, -5.0])), exactly(torch.tensor([-2.0, -6.5]))))
    1.25 (exact), ± 0.25 over 2 samples
    """
    a, b = (_samples(part, name) for part, name in ((first, "first"), (second, "second")))
    if a.shape != b.shape:
        raise ValueError(
            f"A paired difference needs the same samples on both sides. Got {len(a)} and {len(b)} log-likelihoods. "
            "Score both models on the same rows, in the same order."
        )
    both = (("first", first), ("second", second))
    return Estimate(
        a - b,
        math.hypot(_mean(first.error), _mean(second.error)),
        _mean(first.lower) - _mean(second.upper),
        _mean(first.upper) - _mean(second.lower),
        first.kind if first.kind == second.kind else f"{first.kind} and {second.kind}",
        trusted=first.trusted and second.trusted,
        note="; ".join(f"{name}: {part.note}" for name, part in both if part.note),
        at_least=_mean(first.at_least) - _mean(second.at_most),
        at_most=_mean(first.at_most) - _mean(second.at_least),
    ).mean()


def exactly(log_likelihood: Tensor) -> Estimate:
    """Return log-likelihoods of samples that are known without an error, such as those of a Gaussian."""
    x = log_likelihood
    return Estimate(x, 0.0, x, x, "exact", at_least=x, at_most=x)


def standard_errors(difference: Estimate) -> float:
    """Return by how many standard errors, both together, a difference lies above zero: below -2 or so is worse."""
    total = math.hypot(difference.error, difference.spread)
    return difference.value / total if total else math.copysign(math.inf, difference.value) if difference.value else 0.0


def _samples(estimate: Estimate, name: str) -> Tensor:
    values = torch.as_tensor(estimate.value, dtype=torch.float64).detach().cpu()
    if values.ndim == 0:
        raise ValueError(
            f"`{name}` is a single number. A paired difference needs the log-likelihood of each sample: give what "
            "log_likelihood(model, x) returns, not its mean()."
        )
    return values.flatten()


def _mean(number: Tensor | float) -> float:
    return torch.as_tensor(number, dtype=torch.float64).mean().item()
