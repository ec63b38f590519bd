"""Every unit under the contract, and units that are wrong on purpose, which must fail it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

import harmonium.units
from harmonium.draws import draw_bernoulli, draw_normal
from harmonium.testing import ALL_UNITS, ContractError, check_unit
from harmonium.units import Bernoulli, Binomial, Categorical, Gaussian, Multinary, NReLU, Poisson, Spin, Units


@pytest.mark.parametrize("make", ALL_UNITS, ids=lambda make: repr(make()))
def test_unit(make: Callable[[], Units], generator: torch.Generator) -> None:
    check_unit(make(), n_samples=10000, generator=generator)


def test_every_file_is_exported_and_listed() -> None:
    folder = Path(harmonium.units.__file__).parent
    others = ("__init__", "activation", "base")
    files = {path.stem.replace("_", "") for path in folder.glob("*.py") if path.stem not in others}
    assert {type(make()).__name__.lower() for make in ALL_UNITS} == files


# --- negative controls ------------------------------------------------------------------------------------------------
class SharpDraw(Bernoulli):
    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        return draw_bernoulli((1.2 * field).sigmoid(), generator=generator)


class WrongMean(Bernoulli):
    def mean(self, field: Tensor) -> Tensor:
        return field.sigmoid() + 1e-6


class WrongVariance(Spin):
    def variance(self, field: Tensor) -> Tensor:
        return 1 - field.tanh()


class WrongLink(Bernoulli):
    def link(self, mean: Tensor) -> Tensor:
        return mean.log()


class WrongBase(Binomial):
    def log_base(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)


class WrongMode(Bernoulli):
    def mode(self, field: Tensor) -> Tensor:
        return (field > 0.5).to(field.dtype)


class Overflowing(Bernoulli):
    def log_partition(self, field: Tensor) -> Tensor:
        return field.exp().log1p()


class NoNoise(Gaussian):
    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        return field


class WrongSpread(Gaussian):
    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        return field + 1.1 * self.sigma * draw_normal(field, generator=generator)


class Shared(Gaussian):
    """All samples of a batch get the same noise in pairs: right law, not independent."""

    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        noise = draw_normal(field, generator=generator)
        if field.ndim > len(self.shape):
            noise = torch.where(torch.arange(len(noise))[:, None] % 2 == 1, noise.roll(1, 0), noise)
        return field + self.sigma * noise


class Unseeded(Poisson):
    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        return torch.poisson(self.mean(field))


class OnlyDouble(Bernoulli):
    def mean(self, field: Tensor) -> Tensor:
        return field.double().sigmoid()


class OnCPU(Bernoulli):
    def log_base(self, x: Tensor) -> Tensor:
        return torch.zeros(x.shape, dtype=x.dtype)


class Rounded(NReLU):
    """Nair and Hinton's rule, rounded: an approximation of the law, not the law."""

    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        noise = draw_normal(field, generator=generator)
        return (field + field.sigmoid().sqrt() * noise).clamp_min(0).round()


class TwoHot(Categorical):
    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        return draw_bernoulli(field.softmax(-1), generator=generator)


class Clipped(Multinary):
    """A normal draw cut at the ends: at θ = -2 with one level its mean is 0.197, where the unit's is 0.119."""

    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        noise = draw_normal(field, generator=generator)
        return (self.mean(field) + self.variance(field).sqrt() * noise).clamp(0, self.levels)


class Unclipped(Multinary):
    """The same without the cut: right in its mean, and it leaves the support."""

    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        return self.mean(field) + self.variance(field).sqrt() * draw_normal(field, generator=generator)


class Collapsed(Bernoulli):
    def log_partition(self, field: Tensor) -> Tensor:
        return super().log_partition(field).sum(-1, keepdim=True)


WRONG = [
    (SharpDraw(3), "draws do not follow the law"),
    (WrongMean(3), "mean of the statistic against ∂A/∂θ"),
    (WrongVariance(3), "variance of the statistic against ∂²A/∂θ²"),
    (WrongLink(3), "link"),
    (WrongBase(3, levels=4), "log_partition against the sum of its base measure"),
    (WrongMode(3), "mode is not the most probable"),
    (Overflowing(3), "log_partition is not finite at a field of 100"),
    (NoNoise(3), "draws do not follow the law: the distance"),
    (WrongSpread(3), "draws do not follow the law: the distance"),
    (Shared(3), "successive draws are correlated"),
    (Unseeded(3), "the same generator gives other draws"),
    (OnlyDouble(3), "is torch.float64, not torch.float32"),
    (OnCPU(3), "is on cpu, not on meta"),
    (Rounded(3), "draws do not follow the law"),
    (Collapsed(3), "the shape is"),
    (Clipped(3, levels=1, k=1.0), "the draws do not have the mean of the units"),
    (Clipped(3, levels=4), "the draws do not have the mean of the units"),
]


@pytest.mark.parametrize(("units", "text"), WRONG, ids=lambda value: type(value).__name__)
def test_wrong_unit_fails(units: Units, text: str) -> None:
    with pytest.raises(ContractError, match=text):
        check_unit(units)


def test_draws_outside_the_support_fail() -> None:
    with pytest.raises(ValueError, match=r"`samples` must lie in \[0, 1\]"):
        check_unit(Unclipped(3, levels=1, k=1.0))
    with pytest.raises(ValueError, match="`samples` must hold one-hot vectors"):
        check_unit(TwoHot(2, 3))
