"""Real units with a Gaussian weight."""

from __future__ import annotations

import math
from typing import Self

import torch
from torch import Tensor, nn

from harmonium.draws import draw_normal
from harmonium.memory import check_parameter
from harmonium.types import gradient, weighted_sum
from harmonium.units.base import Units


class Gaussian(Units):
    """Real units with `log μ(x) = -x²/2σ²`, statistic `s(x) = x/σ²` and a learned σ for each (lab exercise, section 2).

    Then `A(θ) = θ²/2σ² + ½ log 2πσ²` and `x | θ ~ N(θ, σ²)`: with a bias b and weights W, `x | z ~ N(b + Wz, σ²)` and
    `z | x ~ B(σ(c + Wᵀx/σ²))`. The lab's constant `b²/2σ²` is left out of the energy: it cancels in every probability.
    σ is held as `log_sigma`, never below `floor`.

    >>> Gaussian(2, initial_sigma=0.5).variance(torch.zeros(2))
    tensor([0.2500, 0.2500], grad_fn=<ExpandBackward0>)
    """

    support = "real"

    def __init__(self, *shape: int, initial_sigma: float = 1.0, floor: float = 1e-3) -> None:
        super().__init__(*shape)
        if not floor > 0:
            raise ValueError(f"`floor` must be a positive number. Got {floor}. Try floor=1e-3.")
        if not (math.isfinite(initial_sigma) and initial_sigma >= floor):
            raise ValueError(
                f"`initial_sigma` must be finite and at least floor={floor:g}. Got {initial_sigma}. "
                "A Gaussian unit needs a spread; try initial_sigma=1.0 on standardized data."
            )
        self.initial_sigma = initial_sigma
        self.floor = floor
        check_parameter(shape)
        self.log_sigma = nn.Parameter(torch.full(shape, math.log(initial_sigma)))

    @classmethod
    def examples(cls) -> list[Self]:
        """Return small layers of this kind, which the contracts are held to."""
        return [cls(3, initial_sigma=0.7)]

    @property
    def sigma(self) -> Tensor:
        """The standard deviation of each unit under any field."""
        return self.log_sigma.exp().clamp_min(self.floor)

    def log_partition(self, field: Tensor) -> Tensor:
        """Return `A(θ) = θ²/2σ² + ½ log 2πσ²`."""
        return (field / self.sigma).square() / 2 + (self.sigma.square() * (2 * math.pi)).log() / 2

    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw `x = θ + σε` with standard normal ε."""
        return draw_normal(field, generator=generator).mul_(self.sigma).add_(field)

    def mean(self, field: Tensor) -> Tensor:
        """Return `E[x] = θ`."""
        return field

    def variance(self, field: Tensor) -> Tensor:
        """Return `σ²`."""
        return self.sigma.square().expand_as(field)

    def mode(self, field: Tensor) -> Tensor:
        """Return θ."""
        return field

    def statistic(self, x: Tensor) -> Tensor:
        """Return `s(x) = x/σ²`."""
        return x / self.sigma.square()

    def log_base(self, x: Tensor) -> Tensor:
        """Return `log μ(x) = -x²/2σ²`."""
        return -(x / self.sigma).square() / 2

    def link(self, mean: Tensor) -> Tensor:
        """Return `θ = m`."""
        return mean

    def accumulate_grad(
        self, weight: Tensor | float, work: Tensor | float, x: Tensor, *, summed_out: bool = False
    ) -> None:
        """Add `Σ weight · ∂E/∂log σ = Σ weight · (2θx - x²)/σ²`, as `E = (x²/2 - θx)/σ²`; E[x²] if x is summed out."""
        if not self.log_sigma.requires_grad:
            return
        squares = weighted_sum(x.square(), weight, self.shape) / self.sigma.square()
        if summed_out:  # E[x²] = m² + σ²
            squares = squares + weighted_sum(torch.ones_like(x), weight, self.shape)
        gradient(self.log_sigma).add_(2 * work - squares)

    @torch.no_grad()
    def fit_parameters(self, x: Tensor) -> None:
        """Set σ to the spread of the data."""
        known = x.isfinite()
        n = known.sum(0).clamp_min(1)
        mean = x.where(known, 0.0).sum(0) / n
        variance = (x - mean).square().where(known, 0.0).sum(0) / n
        self.log_sigma.copy_(variance.sqrt().clamp_min(self.floor).log())

    @torch.no_grad()
    def project(self) -> None:
        """Raise `log_sigma` to the floor where it fell below."""
        self.log_sigma.clamp_(min=math.log(self.floor))
