"""Pseudo-likelihood."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from harmonium.learning.objectives.unit_by_unit import UnitByUnit


@dataclass(frozen=True)
class PseudoLikelihood(UnitByUnit):
    """`-Σ_i log p(x_i | x_rest)` (Besag 1975), with `p(x_i = s | x_rest) = softmax_s(-F_is)`.

    Consistent: at the truth each conditional is right. `n_units` makes it stochastic.

    >>> rbm = RBM(Bernoulli(3), Bernoulli(2))
    >>> with torch.no_grad():
    ...     _ = rbm.weight.zero_()
    >>> PseudoLikelihood().loss(rbm, torch.ones(1, 3)).item() / 3     # log 2
    0.693...
    """

    def unit_loss(self, energies: Tensor) -> Tensor:
        """Return `-log softmax(-F)₀`."""
        return energies[0] + (-energies).logsumexp(0)
