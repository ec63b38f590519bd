"""log Z by the best way there is."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.partition.ais import (
    Progress,
    anneal,
    equilibrate,
    from_weights,
    melt,
    reversed_estimate,
)
from harmonium.partition.base import Reference, path_of
from harmonium.partition.exact import MAX_STATES, counted_layers, exact_log_z
from harmonium.partition.schedule import adapted_betas
from harmonium.types import EnergyModel, Estimate

WIDEST = 1.0
"""The width of a sandwich, in nats, beyond which it is not trusted."""


@torch.no_grad()
def log_z(
    model: EnergyModel,
    *,
    n_chains: int = 512,
    n_betas: int = 1000,
    n_steps: int = 200,
    reference: Reference | None = None,
    generator: torch.Generator | None = None,
    on_beta: Progress | None = None,
) -> Estimate:
    """Return log Z: exactly where it can be counted, else between a lower and an upper bound.

    The sandwich runs annealed importance sampling up (a stochastic lower bound) and down again from equilibrated
    samples (an upper bound); the value is Bennett's (1976) estimate from both sets of weights. `[lower, upper]` are the
    two bounds, each three standard errors outward. A sandwich wider than 1 nat is marked as not trustworthy, with a
    warning.
    """
    if isinstance(model, BoltzmannMachine):
        n_states = counted_layers(model)[1]
        if n_states is not None and n_states <= MAX_STATES:
            return exact_log_z(model)
    path = path_of(model, reference)
    betas = adapted_betas(path, n_betas, generator=generator)
    up, point = anneal(path, betas, n_chains, generator=generator, on_beta=on_beta)
    start = equilibrate(path, point, up, n_steps, generator=generator)
    down = melt(path, betas, start, generator=generator, on_beta=on_beta)
    low, high = from_weights(up, path.log_z0(), "ais"), reversed_estimate(down, path.log_z0())
    value, error = bennett(up, down)
    value += path.log_z0()
    lower, upper = min(low.lower, value), max(high.upper, value)
    width = upper - lower
    note = ""
    if width > WIDEST:
        note = (
            f"the bounds of log Z are {width:.2g} nats apart. Use more temperatures (n_betas={4 * n_betas}), more "
            "chains, or a reference fitted to the data"
        )
        warnings.warn(f"log Z is not trustworthy: {note}.", stacklevel=2)
    return Estimate(value, error, lower, upper, "sandwich", ess=low.ess, trusted=not note, note=note)


def bennett(up: Tensor, down: Tensor) -> tuple[float, float]:
    """Return `log Z - log Z_0` and its error from log weights made upward and downward (Bennett 1976; Shirts 2003).

    The value c solves `Σ_up σ(up - c - M) = Σ_down σ(down + c + M)`, `M = log(n_up/n_down)`, found by bisection since
    the left side falls with c and the right side rises.
    """
    ratio = math.log(len(up) / len(down))
    low = min(up.min().item(), -down.max().item()) - 50.0
    high = max(up.max().item(), -down.min().item()) + 50.0
    for _ in range(100):
        c = (low + high) / 2
        balance = torch.sigmoid(up - c - ratio).sum() - torch.sigmoid(down + c + ratio).sum()
        low, high = (c, high) if balance > 0 else (low, c)
    c = (low + high) / 2
    f, g = torch.sigmoid(up - c - ratio), torch.sigmoid(down + c + ratio)
    return c, math.sqrt(_relative_variance(f) + _relative_variance(g))


def _relative_variance(x: Tensor) -> float:
    return (x.var() / x.mean().square() / len(x)).item()
