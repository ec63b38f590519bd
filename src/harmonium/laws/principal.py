"""What any model of images must beat: independent Gaussian pixels, and a Gaussian on principal components."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.draws import draw_normal

_LARGE = 4096  # values of a sample from which the covariance is too large to diagonalize
_ITERATIONS = 8


@dataclass(frozen=True, eq=False)
class PixelGaussian:
    """Every pixel by itself: `x_i ~ N(mean_i, std_i²)`."""

    mean: Tensor
    std: Tensor

    @classmethod
    def fit(cls, x: Tensor) -> PixelGaussian:
        """Fit the mean and standard deviation of each value of the samples `(n, *shape)`.

        >>> PixelGaussian.fit(torch.tensor([[0.0], [2.0]])).std
        tensor([1.])
        """
        _check(x)
        std, mean = torch.std_mean(x, dim=0, correction=0)
        return cls(mean, std)

    def sample(self, n: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw `(n, *shape)` samples."""
        return self.mean + self.std * draw_normal(self.mean.expand(n, *self.mean.shape), generator=generator)


@dataclass(frozen=True, eq=False)
class PCAGaussian:
    """A Gaussian on the first principal components: `x = mean + Σ_i √λ_i ε_i u_i`, `ε_i ~ N(0, 1)`.

    `components` are the `(n_components, d)` eigenvectors u of the covariance with the largest eigenvalues λ,
    `variances`. No noise is added outside their span.
    """

    mean: Tensor
    components: Tensor
    variances: Tensor

    @classmethod
    def fit(cls, x: Tensor, n_components: int) -> PCAGaussian:
        """Fit to samples `(n, *shape)`: in float64, or by subspace iteration where a sample has over 4096 values."""
        _check(x)
        d = math.prod(x.shape[1:])
        if not 1 <= n_components <= min(len(x) - 1, d):
            raise ValueError(
                f"`n_components` must be in 1..{min(len(x) - 1, d)} for {len(x)} samples of {d} values. "
                f"Got {n_components}."
            )
        mean = torch.stack([part.double().sum(0) for part in x.split(1000)]).sum(0) / len(x)
        if d > _LARGE:
            components, variances = _leading((x - mean.to(x.dtype)).flatten(1), n_components)
            return cls(mean.to(x.dtype), components, variances)
        centered = (x.double() - mean).flatten(1)
        if d <= len(x):
            values, vectors = torch.linalg.eigh(centered.mT @ centered / len(x))
            components, variances = vectors.mT.flip(0)[:n_components], values.flip(0)[:n_components]
        else:
            _, singular, rows = torch.linalg.svd(centered, full_matrices=False)
            components, variances = rows[:n_components], singular[:n_components].square() / len(x)
        return cls(mean.to(x.dtype), components.to(x.dtype), variances.clamp_min(0).to(x.dtype))

    def project(self, x: Tensor) -> Tensor:
        """Return the samples with all but their principal components removed."""
        flat = (x - self.mean).flatten(1)
        return (flat @ self.components.mT @ self.components).view(x.shape) + self.mean

    def sample(self, n: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw `(n, *shape)` samples."""
        noise = draw_normal(self.variances.expand(n, -1), generator=generator)
        return ((noise * self.variances.sqrt()) @ self.components).view(n, *self.mean.shape) + self.mean


def _leading(centered: Tensor, n_components: int) -> tuple[Tensor, Tensor]:
    """Return the leading eigenvectors and eigenvalues of `XᵀX/n` without forming it, by subspace iteration.

    `Q ← qr(Xᵀ X Q)` of a few more columns than wanted, started at samples, then the eigenvectors inside that subspace
    (Halko, Martinsson and Tropp 2011, algorithms 4.4 and 5.3). Nothing random: the same samples, the same result.
    """
    n, d = centered.shape
    width = min(n, d, n_components + n_components // 10 + 10)
    basis = torch.linalg.qr(centered[torch.linspace(0, n - 1, width).long()].mT).Q
    for _ in range(_ITERATIONS):
        basis = torch.linalg.qr(centered.mT @ (centered @ basis)).Q
    inside = (centered @ basis).double()
    values, vectors = torch.linalg.eigh(inside.mT @ inside / n)
    components = (basis @ vectors.to(basis.dtype)).mT.flip(0)[:n_components]
    return components.contiguous(), values.flip(0)[:n_components].clamp_min(0).to(centered.dtype)


def _check(x: Tensor) -> None:
    if not x.is_floating_point():
        raise TypeError(f"`x` must be floating-point. Got {x.dtype}. Scale bytes to [0, 1] with x.float() / 255.")
    if x.ndim < 2 or len(x) < 2:
        raise ValueError(f"`x` must hold at least 2 samples, as (n, *shape). Got {tuple(x.shape)}.")
    if not bool(x.isfinite().all()):
        raise ValueError("`x` must be finite. Got NaN or infinite values: fill or drop them.")
