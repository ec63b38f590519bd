"""Ratio matching."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from harmonium.learning.objectives.unit_by_unit import UnitByUnit


@dataclass(frozen=True)
class RatioMatching(UnitByUnit):
    """`½ Σ_i Σ_s (1[x_i = s] - p(s | x_rest))²`: the conditionals by their squared error.

    For two states this is Hyvärinen's `Σ_i g(p(x)/p(x̄_i))²` with `g(u) = 1/(1 + u)` and x̄_i the sample with unit i
    flipped (2007, section 4; Marlin et al. 2010 for RBMs): score matching for 0/1 units. For more states the squared
    error, a proper score, keeps it consistent. Only ratios of probabilities enter.

    >>> rbm = RBM(Bernoulli(3), Bernoulli(2))
    >>> with torch.no_grad():
    ...     _ = rbm.weight.zero_()
    >>> RatioMatching().loss(rbm, torch.ones(1, 3)).item()     # 3 · ½²
    0.75
    """

    def unit_loss(self, energies: Tensor) -> Tensor:
        """Return `½ ((1 - p₀)² + Σ_{s>0} p_s²)`."""
        p = (-energies).softmax(0)
        return ((1 - p[0]).square() + p[1:].square().sum(0)) / 2
