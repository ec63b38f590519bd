"""Counts of active copies."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor

from harmonium.draws import draw_binomial
from harmonium.types import softplus
from harmonium.units.base import Units


class Binomial(Units):
    """Units with values 0..N: N copies of a binary unit (Teh and Hinton 2001), `A(θ) = N log(1 + e^θ)`, mean `N σ(θ)`.

    >>> Binomial(2, levels=10).mean(torch.zeros(2))
    tensor([5., 5.])
    """

    def __init__(self, *shape: int, levels: int) -> None:
        super().__init__(*shape)
        if levels < 1:
            raise ValueError(f"`levels` must be at least 1. Got {levels}. Binomial units take the values 0..levels.")
        self.levels = levels

    @classmethod
    def examples(cls) -> list[Self]:
        """Return small layers of this kind, which the contracts are held to."""
        return [cls(3, levels=4)]

    def log_partition(self, field: Tensor) -> Tensor:
        """Return `A(θ) = N log(1 + e^θ)`."""
        return self.levels * softplus(field)

    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw the number of active copies out of N, each active with probability `σ(θ)`."""
        return draw_binomial(self.levels, field.sigmoid(), generator=generator)

    def mean(self, field: Tensor) -> Tensor:
        """Return `N σ(θ)`."""
        return self.levels * field.sigmoid()

    def variance(self, field: Tensor) -> Tensor:
        """Return `N σ(θ) σ(-θ)`."""
        return self.levels * field.sigmoid() * (-field).sigmoid()

    def mode(self, field: Tensor) -> Tensor:
        """Return the largest integer not above `(N + 1) σ(θ)`, at most N."""
        return ((self.levels + 1) * field.sigmoid()).floor().clamp_max(self.levels)

    def log_base(self, x: Tensor) -> Tensor:
        """Return `log μ(x) = log C(N, x)`."""
        n = torch.full_like(x, self.levels)
        return (n + 1).lgamma() - (x + 1).lgamma() - (n - x + 1).lgamma()

    def link(self, mean: Tensor) -> Tensor:
        """Return `θ = log(m / (N - m))`."""
        return (mean / self.levels).logit()

    def states(self) -> Tensor:
        """Return 0..N."""
        return torch.arange(self.levels + 1, dtype=torch.float64)
