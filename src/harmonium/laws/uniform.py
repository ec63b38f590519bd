"""The uniform density on a box as a law to start from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.draws import draw_uniform


@dataclass(frozen=True)
class UniformLaw:
    """The density `(high - low)⁻ᵈ` on the box `[low, high]ᵈ`, and 0 outside: normalized and drawn exactly.

    As the reference of `ais` it makes the model a law on the box: Z is the integral over it.

    >>> UniformLaw((2,), -1.0, 1.0).free_energy(torch.zeros(1, 2))     # log 4
    tensor([1.3863])
    """

    shape: tuple[int, ...]
    low: float = -1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"`low` must be below `high`. Got {self.low} and {self.high}.")

    @property
    def scale(self) -> Tensor:
        """The standard deviation of each coordinate, `(high - low)/√12`."""
        return torch.full(self.shape, (self.high - self.low) / math.sqrt(12))

    def free_energy(self, x: Tensor) -> Tensor:
        """Return `-log p(x)`, `(*batch,)`: a constant in the box, +∞ outside."""
        inside = ((x >= self.low) & (x <= self.high)).flatten(x.ndim - len(self.shape)).all(-1)
        volume = math.prod(self.shape) * math.log(self.high - self.low)
        return torch.where(inside, volume, torch.inf).to(x.dtype)

    def slope(self, x: Tensor) -> Tensor:
        """Return `∂F/∂x = 0`."""
        return torch.zeros_like(x)

    def initial(self, n: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw `n` samples, exactly."""
        return draw_uniform(torch.empty(n, *self.shape), generator=generator).mul_(self.high - self.low).add_(self.low)
