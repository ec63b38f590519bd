"""How far samples are from data: the Fréchet distance between their features, with its error and its floor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.draws import draw_permutation
from harmonium.evaluation.images.feature_network import FeatureNetwork


@dataclass(frozen=True)
class FrechetScore:
    """A Fréchet distance that says what it was measured with: it is never shown without these.

    `error` is one standard error over the samples (jackknife over blocks of them; the real images are held fixed).
    `floor` is the distance between two halves of the real images, the mean over a few random halvings, and
    `floor_error` the standard deviation between halvings. The distance of finite samples is biased upwards, the more
    so the fewer there are: compare only scores with the same network and the same numbers of images.

    >>> print(FrechetScore(104.2, 0.71, 6.3, 0.05, "Fréchet distance", "EfficientNet-Lite0", 1280, 9000, 5000))
    Fréchet distance (EfficientNet-Lite0, 1280 features) 104.20 ± 0.71 of 5,000 samples to 9,000 real images;
    floor 6.300 ± 0.050 between two halves of the real images
    """

    value: float
    error: float
    floor: float
    floor_error: float
    score: str
    network: str
    n_features: int
    n_real: int
    n_samples: int

    def __str__(self) -> str:
        return (
            f"{self.score} ({self.network}, {self.n_features} features) {with_error(self.value, self.error)} "
            f"of {self.n_samples:,} samples to {self.n_real:,} real images; "
            f"floor {with_error(self.floor, self.floor_error)} between two halves of the real images"
        )


def frechet_distance(real_features: Tensor, sample_features: Tensor) -> float:
    """Squared Fréchet distance of two Gaussians: `|μ₁ - μ₂|² + tr Σ₁ + tr Σ₂ - 2 tr (Σ₁^½ Σ₂ Σ₁^½)^½`.

    Dowson and Landau 1982; on features of images Heusel et al. 2017. The moments are those of the features `(n, d)`
    and `(m, d)`, in float64. With `Σ = L Lᵀ` from the eigenvalues of Σ, zero ones dropped, the last trace is the sum of
    the singular values of `L₁ᵀ L₂`: nothing is inverted, and fewer samples than features do no harm.

    >>> x = torch.tensor([[0.0], [2.0]])
    >>> round(frechet_distance(x, 3 * x + 1), 6)  # means 1 and 4, standard deviations √2 and 3√2
    17.0
    """
    (mean1, root1), (mean2, root2) = (
        _moments(real_features, "real_features"),
        _moments(sample_features, "sample_features"),
    )
    if len(mean1) != len(mean2):
        raise ValueError(
            f"Both samples must have the same features. Got {len(mean1)} and {len(mean2)}. Use one network for both."
        )
    return _distance(mean1, root1, mean2, root2)


def frechet_score(
    real_features: Tensor,
    sample_features: Tensor,
    network: FeatureNetwork,
    *,
    n_blocks: int = 10,
    n_halvings: int = 3,
    floor: Sequence[float] | None = None,
    generator: torch.Generator | None = None,
) -> FrechetScore:
    """Return the Fréchet distance of samples to real images with its error and its floor, both given as features.

    `network` is the one that made them. The error is the delete-one-block jackknife over `n_blocks` blocks of the
    samples, in their order (which should be random). `floor` takes distances between halves computed before.
    """
    if n_blocks < 2 or len(sample_features) < 2 * n_blocks:
        raise ValueError(
            f"`n_blocks` must be at least 2, of two samples each. Got {n_blocks} for {len(sample_features)} samples."
        )
    mean, root = _moments(real_features, "real_features")
    value = _distance(mean, root, *_moments(sample_features, "sample_features"))
    blocks = sample_features.tensor_split(n_blocks)
    without = []
    for left_out in range(n_blocks):
        kept = torch.cat([block for i, block in enumerate(blocks) if i != left_out])
        without.append(_distance(mean, root, *_moments(kept, "sample_features")))
    spread = torch.tensor(without, dtype=torch.float64)
    error = math.sqrt((n_blocks - 1) / n_blocks * (spread - spread.mean()).square().sum().item())
    halves = frechet_floor(real_features, n_halvings=n_halvings, generator=generator) if floor is None else list(floor)
    floors = torch.tensor(halves, dtype=torch.float64)
    floor_error = floors.std().item() if len(floors) > 1 else math.nan
    names = (network.score, network.name, network.n_features)
    return FrechetScore(
        value, error, floors.mean().item(), floor_error, *names, len(real_features), len(sample_features)
    )


def frechet_floor(
    real_features: Tensor, *, n_first: int | None = None, n_halvings: int = 3, generator: torch.Generator | None = None
) -> list[float]:
    """Return the distance between two halves of the real images, for each of `n_halvings` random halvings.

    With `n_first` it is the distance of so many of them to the others: what perfect samples, as many, would have.
    """
    n_first = (len(real_features) + 1) // 2 if n_first is None else n_first
    if n_halvings < 2:
        raise ValueError(f"`n_halvings` must be at least 2, to know how much they differ. Got {n_halvings}.")
    if not 2 <= n_first <= len(real_features) - 2:
        raise ValueError(f"`n_first` must leave 2 of {len(real_features)} real images at least. Got {n_first}.")
    distances = []
    for _ in range(n_halvings):
        order = draw_permutation(len(real_features), generator=generator).to(real_features.device)
        first, second = order[:n_first], order[n_first:]
        distances.append(frechet_distance(real_features[first], real_features[second]))
    return distances


def with_error(value: float, error: float) -> str:
    """Return `value ± error`, two digits of the error.

    >>> with_error(104.2171, 0.7123)
    '104.22 ± 0.71'
    """
    if not (error > 0 and math.isfinite(error)):
        return f"{value:.4g} ± {error:.2g}"
    digits = min(6, max(0, 1 - math.floor(math.log10(error))))
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def _moments(features: Tensor, name: str) -> tuple[Tensor, Tensor]:
    """Return the mean `(d,)` and a root `L` `(d, rank)` of the covariance, `L Lᵀ = Σ`, in float64."""
    if features.ndim != 2 or len(features) < 2:
        raise ValueError(
            f"`{name}` must have shape (n, n_features) with n at least 2. Got {tuple(features.shape)}. "
            "Make them with FeatureNetwork.features."
        )
    x = features.detach().to(torch.float64)
    if not bool(x.isfinite().all()):
        raise ValueError(f"`{name}` must be finite. Got NaN or infinite values. Check the images they were made of.")
    mean = x.mean(0)
    centered = x - mean
    n, d = centered.shape
    if n <= d:  # the centered samples themselves are a root
        return mean, centered.mT / math.sqrt(n - 1)
    values, vectors = torch.linalg.eigh(centered.mT @ centered / (n - 1))
    positive = values > values[-1].clamp_min(0) * d * torch.finfo(torch.float64).eps
    return mean, vectors[:, positive] * values[positive].sqrt()


def _distance(mean1: Tensor, root1: Tensor, mean2: Tensor, root2: Tensor) -> float:
    product = root1.mT @ root2
    cross = torch.linalg.svdvals(product).sum() if product.numel() else product.sum()
    total = (mean1 - mean2).square().sum() + root1.square().sum() + root2.square().sum() - 2 * cross
    return max(0.0, total.item())
