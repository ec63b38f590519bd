"""How far apart log Z of two nearby machines are."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.types import Estimate


@torch.no_grad()
def log_z_shift(machine: BoltzmannMachine, other: BoltzmannMachine, x: Tensor, x_other: Tensor) -> Estimate:
    """Return `log Z' - log Z` of two machines with the same layers, given independent samples of each.

    With `ΔF(x) = F'(x) - F(x)` the inequality of Gibbs and Bogoliubov bounds it on both sides,
    `E_p[-ΔF] ≤ log Z' - log Z ≤ E_p'[-ΔF]`; the value is their middle, the error that of the two means, and
    `[lower, upper]` holds three standard errors of each mean besides. Free energies are taken in double precision.
    Chains that mix badly make the means worse than their errors say, so the shift is for machines that hardly differ,
    such as `rbm.rounded()`.

    >>> rbm = RBM(Bernoulli(4), Bernoulli(3), generator=torch.Generator().manual_seed(0))
    >>> x = sample(rbm, 50, generator=torch.Generator().manual_seed(1))
    >>> shift = log_z_shift(rbm, rbm.rounded(), x, x)
    >>> abs(shift.value) < 1e-4, shift.kind
    (True, 'bogoliubov')
    """
    first, second = (copy.deepcopy(model).double() for model in (machine, other))
    sides = []
    for samples in (x, x_other):
        if len(samples) < 2:
            raise ValueError(f"log_z_shift needs at least two samples of each machine. Got {len(samples)}.")
        change = first.free_energy(samples.double()) - second.free_energy(samples.double())
        sides.append((change.mean().item(), (change.std() / len(change) ** 0.5).item()))
    (low, low_error), (high, high_error) = sides
    error = (low_error**2 + high_error**2) ** 0.5 / 2
    return Estimate((low + high) / 2, error, low - 3 * low_error, high + 3 * high_error, "bogoliubov")
