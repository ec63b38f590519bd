"""The Gaussian as a law to start from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.draws import draw_normal


@dataclass(frozen=True, eq=False)
class GaussianLaw:
    """`N(mean, std²)`, coordinate by coordinate: normalized, drawn exactly, a reference and a noise for other laws.

    `mean` has the shape of one sample; `std` too, or is one number.

    >>> law = GaussianLaw(torch.zeros(2), 1.0)
    >>> law.free_energy(torch.zeros(1, 2))     # log 2π
    tensor([1.8379])
    """

    mean: Tensor
    std: Tensor | float = 1.0

    def __post_init__(self) -> None:
        if not bool((torch.as_tensor(self.std) > 0).all()):
            raise ValueError(f"`std` must be positive. Got {self.std}. Give constant coordinates a small width.")

    @classmethod
    def fitted(cls, x: Tensor, *, floor: float = 1e-2) -> GaussianLaw:
        """Return the law with the mean and the standard deviation of samples, no coordinate narrower than `floor`."""
        return cls(x.mean(0), x.std(0).clamp_min(floor))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return tuple(self.mean.shape)

    @property
    def scale(self) -> Tensor:
        """The standard deviation of each coordinate."""
        return torch.as_tensor(self.std, dtype=self.mean.dtype, device=self.mean.device).expand(self.mean.shape)

    def free_energy(self, x: Tensor) -> Tensor:
        """Return `-log p(x)`, `(*batch,)`."""
        scale = self.scale.to(x)
        terms = ((x - self.mean.to(x)) / scale).square() / 2 + scale.log() + 0.5 * math.log(2 * math.pi)
        return terms.flatten(x.ndim - self.mean.ndim).sum(-1)

    def slope(self, x: Tensor) -> Tensor:
        """Return `∂F/∂x = (x - mean)/std²`."""
        return (x - self.mean.to(x)) / self.scale.to(x).square()

    def initial(self, n: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw `n` samples, exactly."""
        like = self.mean.new_empty(n, *self.shape)
        return draw_normal(like, generator=generator).mul_(self.scale).add_(self.mean)
