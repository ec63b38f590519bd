"""Densities in the plane, and samples of them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.draws import draw_integers, draw_normal, draw_uniform


def positive(**numbers: float) -> None:
    """Raise unless every number is positive."""
    for name, number in numbers.items():
        if not number > 0:
            raise ValueError(f"`{name}` must be positive. Got {number}.")


def labelled_moons(n: int, *, noise: float = 0.1, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Draw moons with the moon of each sample."""
    positive(n=n)
    label = draw_integers(2, (n,), generator=generator)
    angle = math.pi * _uniform(n, generator=generator)
    upper = torch.stack([angle.cos(), angle.sin()], 1)
    lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], 1)
    x = torch.where(label[:, None] == 0, upper, lower)
    return x + noise * _normal(*x.shape, generator=generator), label


def moons(n: int, *, noise: float = 0.1, generator: torch.Generator | None = None) -> Tensor:
    """Draw n points on two half circles, `(cos t, sin t)` and `(1 - cos t, ½ - sin t)` with t uniform in [0, π), plus
    Gaussian noise: the two moons of the lab exercise and of scikit-learn."""
    return labelled_moons(n, noise=noise, generator=generator)[0]


def labelled_circles(
    n: int, *, noise: float = 0.05, factor: float = 0.5, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Draw circles with the circle of each sample: 0 outer, 1 inner."""
    positive(n=n)
    label = draw_integers(2, (n,), generator=generator)
    angle = 2 * math.pi * _uniform(n, generator=generator)
    radius = torch.where(label == 0, 1.0, factor)
    x = radius[:, None] * torch.stack([angle.cos(), angle.sin()], 1)
    return x + noise * _normal(*x.shape, generator=generator), label


def circles(n: int, *, noise: float = 0.05, factor: float = 0.5, generator: torch.Generator | None = None) -> Tensor:
    """Draw n points on two circles about the origin, of radius 1 and `factor`, plus Gaussian noise."""
    return labelled_circles(n, noise=noise, factor=factor, generator=generator)[0]


def ring(n_components: int, radius: float) -> Tensor:
    """Return the `n_components` centers `radius · (cos 2πk/K, sin 2πk/K)` of the mixture, in float64."""
    positive(n_components=n_components)
    angle = 2 * math.pi * torch.arange(n_components, dtype=torch.float64) / n_components
    return radius * torch.stack([angle.cos(), angle.sin()], 1)


def labelled_mixture(
    n: int,
    *,
    n_components: int = 8,
    radius: float = 2.0,
    std: float = 0.2,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Draw the mixture with the component of each sample."""
    positive(n=n, std=std)
    label = draw_integers(n_components, (n,), generator=generator)
    x = ring(n_components, radius).float()[label]
    return x + std * _normal(*x.shape, generator=generator), label


def mixture(
    n: int,
    *,
    n_components: int = 8,
    radius: float = 2.0,
    std: float = 0.2,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw n points of `p(x) = (1/K) Σ_k N(x; c_k, std² I)`, with the K centers c_k evenly on a circle."""
    return labelled_mixture(n, n_components=n_components, radius=radius, std=std, generator=generator)[0]


def mixture_log_density(x: Tensor, *, n_components: int = 8, radius: float = 2.0, std: float = 0.2) -> Tensor:
    """Return the exact log density of `mixture` at `x`, `(*batch, 2) -> (*batch,)`:
    `log (1/K) Σ_k exp(-|x - c_k|² / 2 std²) / (2π std²)`.

    >>> x = torch.tensor([[0.0, 0.0]], dtype=torch.float64)
    >>> mixture_log_density(x, n_components=1, radius=0.0, std=1.0)     # -log 2π
    tensor([-1.8379], dtype=torch.float64)
    """
    positive(std=std)
    centers = ring(n_components, radius).to(x)
    squares = (x[..., None, :] - centers).square().sum(-1)
    constant = math.log(n_components) + math.log(2 * math.pi * std**2)
    return torch.logsumexp(-squares / (2 * std**2), -1) - constant


def labelled_pinwheel(
    n: int,
    *,
    n_arms: int = 5,
    radial_std: float = 0.3,
    tangential_std: float = 0.1,
    rate: float = 0.25,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Draw the pinwheel with the arm of each sample."""
    positive(n=n, n_arms=n_arms, radial_std=radial_std, tangential_std=tangential_std)
    label = draw_integers(n_arms, (n,), generator=generator)
    noise = _normal(n, 2, generator=generator)
    along, across = 1 + radial_std * noise[:, 0], tangential_std * noise[:, 1]
    angle = 2 * math.pi * label / n_arms + rate * along.exp()
    x = torch.stack([along * angle.cos() - across * angle.sin(), along * angle.sin() + across * angle.cos()], 1)
    return 2 * x, label


def pinwheel(
    n: int,
    *,
    n_arms: int = 5,
    radial_std: float = 0.3,
    tangential_std: float = 0.1,
    rate: float = 0.25,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw n points of a pinwheel: a Gaussian blob at (1, 0) with stds (`radial_std`, `tangential_std`), turned by
    `2πk/K + rate · exp(r)` where r is its first coordinate, times 2 (Johnson et al. 2016)."""
    return labelled_pinwheel(
        n, n_arms=n_arms, radial_std=radial_std, tangential_std=tangential_std, rate=rate, generator=generator
    )[0]


def checkerboard(n: int, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw n points uniform on the 8 dark squares of a 4 x 4 board on [-4, 4)²: density 1/32 on them, 0 elsewhere."""
    positive(n=n)
    cell = draw_integers(8, (n,), generator=generator)
    row = cell // 2
    column = 2 * (cell % 2) + row % 2
    corner = torch.stack([column, row], 1).float()
    return 2 * (corner + _uniform(*corner.shape, generator=generator)) - 4


# Drawn in double precision, which is PyTorch's work everywhere: a seed gives the same data on every installation.
def _uniform(*shape: int, generator: torch.Generator | None) -> Tensor:
    return draw_uniform(torch.empty(shape, dtype=torch.float64), generator=generator).float()


def _normal(*shape: int, generator: torch.Generator | None) -> Tensor:
    return draw_normal(torch.empty(shape, dtype=torch.float64), generator=generator).float()
