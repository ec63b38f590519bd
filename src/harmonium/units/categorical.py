"""One-hot units."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.draws import draw_categorical
from harmonium.units.base import Units


class Categorical(Units):
    """`n` units, each a one-hot vector over `classes` values: `A(θ) = log Σ_c e^{θ_c}`, mean `softmax θ`.

    >>> Categorical(1, 3).mean(torch.zeros(1, 3))
    tensor([[0.3333, 0.3333, 0.3333]])
    """

    def __init__(self, n: int, classes: int) -> None:
        super().__init__(n, classes)
        self.n = n
        self.classes = classes

    @property
    def sites(self) -> tuple[int, ...]:
        """The shape of the array of units: one axis, since a unit is a vector."""
        return (self.n,)

    def log_partition(self, field: Tensor) -> Tensor:
        """Return `A(θ) = log Σ_c e^{θ_c}`."""
        return field.logsumexp(-1)

    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw class c with probability `softmax(θ)_c`, as a one-hot vector."""
        likelihood = (field - field.amax(-1, keepdim=True)).exp_()  # `softmax` of few classes costs five times as much
        return draw_categorical(likelihood, generator=generator)

    def mean(self, field: Tensor) -> Tensor:
        """Return `softmax θ`."""
        return field.softmax(-1)

    def variance(self, field: Tensor) -> Tensor:
        """Return `m_c (1 - m_c)` of each entry."""
        mean = field.softmax(-1)
        return mean * (1 - mean)

    def mode(self, field: Tensor) -> Tensor:
        """Return the one-hot vector of the largest field."""
        return torch.zeros_like(field).scatter_(-1, field.argmax(-1, keepdim=True), 1.0)

    def log_base(self, x: Tensor) -> Tensor:
        """Return 0 for each unit."""
        return x.new_zeros(x.shape[:-1])

    def link(self, mean: Tensor) -> Tensor:
        """Return `θ_c = log m_c`, defined up to a constant for each unit."""
        return mean.log()

    def states(self) -> Tensor:
        """Return the one-hot vectors."""
        return torch.eye(self.classes, dtype=torch.float64)
