"""Minimum probability flow."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from harmonium.learning.objectives.unit_by_unit import UnitByUnit


@dataclass(frozen=True)
class ProbabilityFlow(UnitByUnit):
    """`Σ_{x'} e^{(F(x) - F(x'))/2}` over the neighbors x' of x, one unit changed (Sohl-Dickstein et al. 2011).

    How fast probability would flow from the data under a dynamics whose law of rest is the model. Neighbors that are
    data too are counted, since the two flows between them cancel in the gradient at the truth: it stays consistent, and
    needs no list of the data. The exponential makes a neighbor that the model prefers count for much: lower the rate,
    or clip the gradient, if it diverges.

    >>> rbm = RBM(Bernoulli(3), Bernoulli(2))
    >>> with torch.no_grad():
    ...     _ = rbm.weight.zero_()
    >>> ProbabilityFlow().loss(rbm, torch.ones(1, 3)).item()
    3.0
    """

    def unit_loss(self, energies: Tensor) -> Tensor:
        """Return `Σ_{s>0} e^{(F₀ - F_s)/2}`."""
        return ((energies[0] - energies[1:]) / 2).exp().sum(0)
