"""Unadjusted Langevin dynamics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from harmonium.draws import draw_step
from harmonium.models.layers import data_layer
from harmonium.samplers.base import Info, Sampler, data_of
from harmonium.samplers.gradient import check_continuous, energy_and_slope
from harmonium.types import EnergyModel, State


@dataclass(frozen=True)
class Langevin(Sampler):
    """Gradient descent with noise: `x ← x - α ∂F/∂x + σε` (eq. 6.24 and 6.28 of Tomczak's chapter).

    With σ = √(2α), the default, the law tends to the model's as α → 0; at finite α it is biased, by O(α). Another
    `noise` samples at another temperature. `limit` clips each coordinate of the drift, a proximal step.

    >>> round(Langevin(step_size=0.01).sigma, 6)
    0.141421
    """

    exact: ClassVar[bool] = False

    step_size: float = 0.01
    noise: float | None = None
    limit: float | None = None

    def __post_init__(self) -> None:
        if not self.step_size > 0:
            raise ValueError(f"`step_size` must be positive. Got {self.step_size}. Try 0.01.")

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise in one step."""
        return math.sqrt(2 * self.step_size) if self.noise is None else self.noise

    @classmethod
    def examples(cls) -> list[Self]:
        """Return steps that suit small machines."""
        return [cls(step_size=0.01)]

    def chain_axis(self) -> int | None:
        """Return 0."""
        return 0

    def init(
        self, model: EnergyModel, x: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> State:
        """Return chains at `x`."""
        check_continuous(model, "Langevin")
        return {data_layer(model): data_of(model, x, "Langevin")}

    def step(self, model: EnergyModel, state: State, *, generator: torch.Generator | None = None) -> tuple[State, Info]:
        """Make one step downhill with noise."""
        layer = data_layer(model)
        x = state[layer]
        energy, slope = energy_and_slope(model, x)
        drift = slope if self.limit is None else slope.clamp_(-self.limit / self.step_size, self.limit / self.step_size)
        new = draw_step(x, drift, -self.step_size, self.sigma, generator=generator)
        return {layer: self.hold(layer, x, new)}, {"energy": energy}
