"""Units with N + 1 levels and any activation."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from harmonium.draws import draw_bernoulli_of_field, draw_categorical, draw_normal, draw_uniform
from harmonium.types import softplus
from harmonium.units.activation import Activation, find_activation
from harmonium.units.base import Units

_REACH = 4.0  # so many spreads from an end a normal law is cut by 7e-6 of its spread, on average


class Multinary(Units):
    """Units with levels 0..N and mean activity `f(θ) = N g(kθ)` (section 3.2 of Hwang et al. 2020).

    The exact unit (`exact=True`) is N binary copies with offsets `o_n = f⁻¹(n - ½)`: `A(θ) = Σ_n log(1 + e^{θ-o_n})`,
    with a true base measure on 0..N and so a likelihood. The smooth unit, the paper's, puts `A(θ) = ∫f` (eq. 5 and 6),
    mean `f` and variance `f'`, and draws from a law on [0, N] that has both: the normal law where it fits, two points
    near the ends, 0 and `f + f'/f` or their mirror images (no law has `f' > f (N - f)`: then 0 and N, with the mean f).
    With N = 1 and k = 1 both are Bernoulli units. By default k = min(1, 4/N), where the steepest offsets lie 1 apart.

    >>> Multinary(2, levels=255).mean(torch.zeros(2))
    tensor([127.5000, 127.5000])
    """

    def __init__(
        self,
        *shape: int,
        levels: int,
        k: float | None = None,
        activation: str | Activation = "sigmoid",
        exact: bool = False,
    ) -> None:
        super().__init__(*shape)
        if levels < 1:
            raise ValueError(f"`levels` must be at least 1. Got {levels}. Multinary units take the values 0..levels.")
        if k is not None and not k > 0:
            raise ValueError(f"`k` must be positive. Got {k}. It scales the field; the default is min(1, 4/levels).")
        self.levels = levels
        self.k = k
        self.activation = activation
        self.exact = exact
        self._curve = find_activation(activation)
        if exact:
            n = torch.arange(1, levels + 1, dtype=torch.float64)
            offsets = self._curve.argument((n - 0.5) / levels) / self.steepness
            self.register_buffer("offsets", offsets, persistent=False)
            self.register_buffer("log_base_table", _log_symmetric_polynomials(-offsets), persistent=False)

    offsets: Tensor
    log_base_table: Tensor

    @classmethod
    def examples(cls) -> list[Self]:
        """Return exact and smooth units with few and many levels and several curves."""
        exact = [cls(3, levels=4, exact=True), cls(2, levels=255, exact=True)]
        exact.append(cls(2, levels=4, k=0.7, activation="relu", exact=True))
        smooth = [cls(2, levels=255, activation="tanh"), cls(2, levels=4, activation="softplus")]
        return [*exact, cls(3, levels=4), cls(3, levels=1, k=1.0), *smooth]

    @property
    def steepness(self) -> float:
        """The factor k on the field."""
        return min(1.0, 4.0 / self.levels) if self.k is None else self.k

    @property
    def support(self) -> str:  # type: ignore[override]
        """The exact unit has finitely many states; the smooth one lives on an interval."""
        return "finite" if self.exact else "real"

    @property
    def proper(self) -> bool:
        """Only the exact unit has a base measure."""
        return self.exact

    def log_partition(self, field: Tensor) -> Tensor:
        """Return `Σ_n log(1 + e^{θ-o_n})`, or `∫f = (N/k) ∫g` of the smooth unit."""
        if self.exact:
            return softplus(self._shifted(field)).sum(-1)
        return self._curve.primitive(self.steepness * field) * (self.levels / self.steepness)

    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw the number of active copies; the smooth unit draws a value of mean `f` and variance `f'` in [0, N]."""
        if self.exact:
            return draw_bernoulli_of_field(self._shifted(field), generator=generator).sum(-1)
        return self.sample_given_mean(field, self.mean(field), generator=generator)

    def sample_given_mean(self, field: Tensor, mean: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw as `sample` does; the variance of the smooth unit follows from its mean where the curve tells."""
        if self.exact:
            return self.sample(field, generator=generator)
        spread = (self.variance(field) if self._curve.slope is None else self._slope(mean / self.levels)).sqrt_()
        drawn = draw_normal(field, generator=generator).mul_(spread).add_(mean).clamp_(0, self.levels)
        low = torch.minimum(mean, self.levels - mean)
        near = (_REACH * spread).gt_(low)
        return drawn if mean.is_meta or not near.sum() else self._near_ends(near, low, mean, spread, drawn, generator)

    def sample_positive(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw a level given that it is not 0: `p(x) ∝ e^{θx} μ(x)` on 1..N.

        Of the exact unit's copies the first active one is n with probability `∝ σ(θ-o_n) Π_{m<n} σ(o_m-θ)`, and those
        after it are free. The smooth unit, which is 0 with probability `e^{-A}`, draws around `f/(1 - e^{-A})`.
        """
        if not self.exact:
            on = -torch.special.expm1(-self.log_partition(field))
            mean = (self.mean(field) / on.clamp_min(torch.finfo(field.dtype).tiny)).clamp_max(self.levels)
            return self.sample_given_mean(field, mean, generator=generator)
        shifted = self._shifted(field)
        before = logsigmoid(-shifted).cumsum(-1).roll(1, -1)
        before[..., 0] = 0
        first = draw_categorical((logsigmoid(shifted) + before).softmax(-1), generator=generator)
        after = first.cumsum(-1) - first
        return 1 + (after * draw_bernoulli_of_field(shifted, generator=generator)).sum(-1)

    def _near_ends(
        self, near: Tensor, low: Tensor, mean: Tensor, spread: Tensor, drawn: Tensor, generator: torch.Generator | None
    ) -> Tensor:
        """Draw near the ends from the law on two points with mean m and spread s, where a normal law would be cut.

        0 with probability `1 - m/c`, else `c = m + s²/m`, at most N; near N its mirror image. Masks are floats, since
        PyTorch takes thirty times as long to choose by booleans.
        """
        low = low.clamp_min_(torch.finfo(low.dtype).tiny)
        reach = spread.square_().div_(low).add_(low).clamp_max_(self.levels)
        value = draw_uniform(low, generator=generator).mul_(reach).lt_(low).mul_(reach)
        value = torch.lerp(value, self.levels - value, mean.clone().gt_(self.levels / 2))
        return torch.lerp(drawn, value, near)

    def mean(self, field: Tensor) -> Tensor:
        """Return `Σ_n σ(θ-o_n)`, or `f(θ) = N g(kθ)` of the smooth unit."""
        if self.exact:
            return self._shifted(field).sigmoid().sum(-1)
        return self.levels * self._curve.value(self.steepness * field)

    def variance(self, field: Tensor) -> Tensor:
        """Return `Σ_n σ'(θ-o_n)`, or `f'(θ) = N k g'(kθ)` of the smooth unit."""
        if self.exact:
            shifted = self._shifted(field)
            return (shifted.sigmoid() * (-shifted).sigmoid()).sum(-1)
        if self._curve.slope is not None:
            return self._slope(self._curve.value(self.steepness * field))
        return super().variance(field).clamp_min(0)  # where g is flat, rounding can leave its slope just below zero

    def mode(self, field: Tensor) -> Tensor:
        """Return the most probable level: next to the mean; the smooth unit's is its mean."""
        mean = self.mean(field)
        if not self.exact:
            return mean
        low, high = mean.floor(), mean.ceil()
        better = self.log_base(high) - self.log_base(low) + field * (high - low) > 0
        return torch.where(better, high, low)

    def log_base(self, x: Tensor) -> Tensor:
        """Return `log μ(x)`, the x-th elementary symmetric polynomial of `e^{-o_n}`; zero for the smooth unit."""
        return self.log_base_table.to(x.dtype)[x.long()] if self.exact else torch.zeros_like(x)

    def link(self, mean: Tensor) -> Tensor:
        """Return `θ = g⁻¹(m/N)/k`; the exact unit is inverted by bisection."""
        return super().link(mean) if self.exact else self._curve.argument(mean / self.levels) / self.steepness

    def states(self) -> Tensor | None:
        """Return 0..N for the exact unit."""
        return torch.arange(self.levels + 1, dtype=torch.float64) if self.exact else None

    def bounds(self) -> tuple[float, float]:
        """Return 0 and N."""
        return 0.0, float(self.levels)

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments that were given to the constructor."""
        return {"levels": self.levels, "k": self.k, "activation": self.activation, "exact": self.exact}

    def _slope(self, value: Tensor) -> Tensor:
        """Return `f' = N k g'` where `value` is g."""
        if self._curve.slope is None:
            raise TypeError(f"The slope of {self._curve!r} is not known as a function of its value.")
        return self._curve.slope(value).mul_(self.levels * self.steepness)

    def _shifted(self, field: Tensor) -> Tensor:
        return field.unsqueeze(-1) - self.offsets.to(field.dtype)


def _log_symmetric_polynomials(log_roots: Tensor) -> Tensor:
    """Return `log e_0 … log e_N` of `e^{log_roots}`: the coefficients of `Π_n (1 + z e^{r_n})`."""
    table = torch.full((len(log_roots) + 1,), -torch.inf, dtype=log_roots.dtype)
    table[0] = 0.0
    for root in log_roots:
        table[1:] = torch.logaddexp(table[1:], table[:-1] + root)
    return table
