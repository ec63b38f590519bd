"""Units that know nothing of each other, as a law to start from."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.units import Units


@dataclass(frozen=True, eq=False)
class IndependentUnits:
    """`p(x) = Π_i exp(θ_i·s(x_i) - A(θ_i)) μ(x_i)`: a layer under a field of its own; normalized and drawn exactly.

    >>> law = IndependentUnits(Bernoulli(3), torch.zeros(3))
    >>> law.free_energy(torch.ones(1, 3)) / 3     # log 2
    tensor([0.6931])
    """

    units: Units
    field: Tensor

    @classmethod
    def fitted(cls, units: Units, x: Tensor) -> IndependentUnits:
        """Return the law with the means of samples and, where a unit has one, their spread; the units are copied."""
        own = copy.deepcopy(units).requires_grad_(False)
        own.fit_parameters(x)
        return cls(own, own.fitted_field(x))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self.units.shape

    def free_energy(self, x: Tensor) -> Tensor:
        """Return `-log p(x)`, `(*batch,)`."""
        field = self.field.to(x)
        log_z = self.units.total(self.units.log_partition(field))
        return log_z - self.units.inner(field, x) - self.units.total(self.units.log_base(x))

    def initial(self, n: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw `n` samples, exactly."""
        return self.units.sample(self.field.expand(n, *self.units.shape), generator=generator)
