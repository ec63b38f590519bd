"""Unbounded counts."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.draws import draw_poisson
from harmonium.units.base import Units


class Poisson(Units):
    """Counts 0, 1, 2, … with `μ(x) = 1/x!`: `A(θ) = e^θ`, mean and variance `e^θ`.

    Beyond θ = `MAX_FIELD` (half a billion counts) the rate saturates and A goes on as its tangent, so that nothing
    overflows. Couple them to bounded units: with unbounded ones Z can be infinite.

    >>> Poisson(1).mean(torch.zeros(1))
    tensor([1.])
    """

    support = "integer"
    MAX_FIELD = 20.0

    def log_partition(self, field: Tensor) -> Tensor:
        """Return `A(θ) = e^θ`."""
        inside = field.clamp_max(self.MAX_FIELD)
        return inside.exp() * (1 + field - inside)

    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw a Poisson count of rate `e^θ`."""
        return draw_poisson(self.mean(field), generator=generator)

    def mean(self, field: Tensor) -> Tensor:
        """Return `e^θ`."""
        return field.clamp_max(self.MAX_FIELD).exp()

    def variance(self, field: Tensor) -> Tensor:
        """Return `e^θ`."""
        return self.mean(field)

    def mode(self, field: Tensor) -> Tensor:
        """Return the largest integer not above `e^θ`."""
        return self.mean(field).floor()

    def log_base(self, x: Tensor) -> Tensor:
        """Return `log μ(x) = -log x!`, and -∞ below zero."""
        return torch.where(x < 0, -torch.inf, -(x.clamp_min(0) + 1).lgamma())

    def link(self, mean: Tensor) -> Tensor:
        """Return `θ = log m`."""
        return mean.log()
