"""One-hot units."""

from __future__ import annotations

from typing import Self

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

    @classmethod
    def examples(cls) -> list[Self]:
        """Return small layers of this kind, which the contracts are held to."""
        return [cls(2, 3)]

    @property
    def sites(self) -> tuple[int, ...]:
        """The shape of the array of units: one axis, since a unit is a vector."""
        return (self.n,)

    def encoded(self, x: Tensor, *, like: Tensor | None = None) -> Tensor:
        """Return one-hot vectors; integers are class numbers, -1 for one that is not known (NaN).

        `(*batch, n)`, or `(*batch,)` for a single unit.

        >>> Categorical(1, 3).encoded(torch.tensor([2, -1]), like=torch.zeros(1)).tolist()
        [[[0.0, 0.0, 1.0]], [[nan, nan, nan]]]
        """
        if x.is_floating_point() and like is not None and tuple(x.shape[-2:]) != self.shape:
            raise ValueError(
                f"{self!r} takes class numbers as integers, (*batch, {self.n}), or one-hot vectors, (*batch, {self.n}, "
                f"{self.classes}). Got {x.dtype} of shape {tuple(x.shape)}. Turn numbers into integers with x.long(), "
                "or reshape the vectors."
            )
        if x.is_floating_point() or like is None or (x.ndim > 2 and tuple(x.shape[-2:]) == self.shape):
            return super().encoded(x, like=like)
        numbers = x.long() if x.shape[-1:] == (self.n,) and (self.n > 1 or x.ndim > 1) else x.long().unsqueeze(-1)
        if numbers.shape[-1] != self.n:
            raise ValueError(
                f"Class numbers of {self!r} must have shape (*batch, {self.n}). Got {tuple(x.shape)}. Give one number "
                "for each unit."
            )
        if numbers.numel() and not (int(numbers.min()) >= -1 and int(numbers.max()) < self.classes):
            raise ValueError(
                f"Class numbers of {self!r} must lie in 0..{self.classes - 1}, or be -1 where unknown. Got "
                f"{int(numbers.min())}..{int(numbers.max())}."
            )
        known = torch.nn.functional.one_hot(numbers.clamp_min(0), self.classes).to(like.dtype)
        return known.masked_fill(numbers.unsqueeze(-1) < 0, torch.nan)

    def check_support(self, x: Tensor, name: str) -> None:
        """Raise unless each unit is a one-hot vector or a mean of such: at least 0, and 1 in sum."""
        super().check_support(x, name)
        if x.numel() == 0 or x.is_meta:
            return
        sums = (x @ x.new_ones(self.classes)).aminmax()  # a product: `sum` of few classes costs three times as much
        worst = max((sums.min.item(), sums.max.item()), key=lambda total: abs(total - 1))
        if abs(worst - 1) > max(1e-3, 4 * self.classes * torch.finfo(x.dtype).eps):
            raise ValueError(
                f"`{name}` must hold one-hot vectors to match {self!r}: one 1 in each, or shares that add up to 1. Got "
                f"a vector that adds up to {worst:g}. Where a class is not known, make all of it NaN."
            )

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
