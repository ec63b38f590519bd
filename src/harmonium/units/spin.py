"""Ising spins."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.draws import draw_bernoulli_of_field
from harmonium.types import softplus
from harmonium.units.base import Units


class Spin(Units):
    """Units with values -1 and 1 and the counting measure: `A(θ) = log(2 cosh θ)`, mean `tanh θ`.

    >>> Spin(2).mode(torch.tensor([-0.1, 3.0]))
    tensor([-1.,  1.])
    """

    def log_partition(self, field: Tensor) -> Tensor:
        """Return `A(θ) = log(2 cosh θ) = log(1 + e^{2θ}) - θ`, which does not overflow."""
        return softplus(2 * field) - field

    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw x = 1 with probability `σ(2θ)`, else x = -1."""
        return draw_bernoulli_of_field(2 * field, generator=generator).mul_(2).sub_(1)

    def mean(self, field: Tensor) -> Tensor:
        """Return `tanh θ`."""
        return field.tanh()

    def variance(self, field: Tensor) -> Tensor:
        """Return `1 - tanh² θ`, written as `4 σ(2θ) σ(-2θ)` to keep its digits."""
        return 4 * (2 * field).sigmoid() * (-2 * field).sigmoid()

    def mode(self, field: Tensor) -> Tensor:
        """Return `sign θ`, and 1 where θ = 0."""
        return torch.where(field < 0, -1.0, 1.0).to(field.dtype)

    def link(self, mean: Tensor) -> Tensor:
        """Return `θ = artanh m`."""
        return mean.atanh()

    def check_support(self, x: Tensor, name: str) -> None:
        """Raise unless every value is one of -1 and 1, or a mean of such; zeros and ones alone are bits."""
        super().check_support(x, name)
        if x.numel() and not x.is_meta and bool((x * (1 - x) == 0).all()) and bool((x != x.flatten()[0]).any()):
            raise ValueError(
                f"`{name}` must hold -1 and 1 to match {self!r}. Got 0 and 1 only. Turn them into spins with "
                "2 * x - 1, or build the layer of Bernoulli units."
            )

    def states(self) -> Tensor:
        """Return -1 and 1."""
        return torch.tensor([-1.0, 1.0], dtype=torch.float64)
