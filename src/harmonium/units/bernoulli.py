"""Binary units."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor

from harmonium.draws import draw_bernoulli, draw_bernoulli_of_field
from harmonium.types import softplus
from harmonium.units.base import Units


class Bernoulli(Units):
    """Units with values 0 and 1 and the counting measure: `A(θ) = log(1 + e^θ)`, mean `σ(θ)` (eq. 6.38 and 6.39).

    >>> Bernoulli(3).mean(torch.zeros(3))
    tensor([0.5000, 0.5000, 0.5000])
    """

    @classmethod
    def examples(cls) -> list[Self]:
        """Return small layers of this kind, which the contracts are held to."""
        return [cls(3), cls(2, 2)]

    def log_partition(self, field: Tensor) -> Tensor:
        """Return `A(θ) = log(1 + e^θ)`."""
        return softplus(field)

    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw x = 1 with probability `σ(θ)`."""
        return draw_bernoulli_of_field(field, generator=generator)

    def sample_given_mean(self, field: Tensor, mean: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw x = 1 with the probability `mean`: the draw that `sample` makes, up to the rounding of the mean."""
        return draw_bernoulli(mean, generator=generator)

    def mean(self, field: Tensor) -> Tensor:
        """Return `σ(θ)`."""
        return field.sigmoid()

    def variance(self, field: Tensor) -> Tensor:
        """Return `σ(θ) σ(-θ)`."""
        return field.sigmoid() * (-field).sigmoid()

    def mode(self, field: Tensor) -> Tensor:
        """Return `[θ > 0]`."""
        return (field > 0).to(field.dtype)

    def link(self, mean: Tensor) -> Tensor:
        """Return `θ = log(m / (1 - m))`."""
        return mean.logit()

    def states(self) -> Tensor:
        """Return 0 and 1."""
        return torch.tensor([0.0, 1.0], dtype=torch.float64)
