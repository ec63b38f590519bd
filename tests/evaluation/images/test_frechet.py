"""The Fréchet distance against closed forms, another matrix square root, and itself under wrong formulas."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.linalg import sqrtm
from torch import Tensor, nn

from harmonium.evaluation.images.feature_network import FeatureNetwork
from harmonium.evaluation.images.frechet import FrechetScore, frechet_distance, frechet_floor, frechet_score


def with_moments(mean: Tensor, covariance: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """Return n points whose sample mean and covariance are exactly these."""
    d = len(mean)
    raw = torch.randn(n, d, dtype=torch.float64, generator=generator)
    raw -= raw.mean(0)
    white = raw @ torch.linalg.inv(torch.linalg.cholesky(torch.cov(raw.T).reshape(d, d))).T
    values, vectors = torch.linalg.eigh(covariance)
    return mean + white @ (vectors * values.clamp_min(0).sqrt()).T


def covariance(d: int, generator: torch.Generator) -> Tensor:
    root = torch.randn(d, d + 2, dtype=torch.float64, generator=generator)
    return root @ root.T / d


def by_scipy(a: Tensor, b: Tensor) -> float:
    first, second = torch.cov(a.T).numpy(), torch.cov(b.T).numpy()
    cross = sqrtm(first @ second).real
    shift = (a.mean(0) - b.mean(0)).square().sum().item()
    return shift + float((first + second - 2 * cross).trace())


def test_one_dimension(generator: torch.Generator) -> None:
    """On the line it is `(μ₁ - μ₂)² + (σ₁ - σ₂)²`."""
    mean, variance = torch.tensor([[2.0], [5.0]], dtype=torch.float64), torch.tensor([4.0, 0.25], dtype=torch.float64)
    a, b = (with_moments(m, v.reshape(1, 1), 40, generator) for m, v in zip(mean, variance, strict=True))
    assert frechet_distance(a, b) == pytest.approx(3.0**2 + 1.5**2, rel=1e-12)


def test_commuting_covariances(generator: torch.Generator) -> None:
    """With common axes it is `|μ₁ - μ₂|² + Σ (√λ_i - √κ_i)²`."""
    axes = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64, generator=generator)).Q
    first = torch.tensor([4.0, 1.0, 0.5, 0.01, 9.0], dtype=torch.float64)
    second = torch.tensor([1.0, 1.0, 2.0, 3.0, 0.0], dtype=torch.float64)
    mean = torch.arange(5.0, dtype=torch.float64)
    a = with_moments(mean, axes * first @ axes.T, 60, generator)
    b = with_moments(-mean, axes * second @ axes.T, 80, generator)
    expected = 4 * mean.square().sum() + (first.sqrt() - second.sqrt()).square().sum()
    assert frechet_distance(a, b) == pytest.approx(expected.item(), rel=1e-9)


def test_agrees_with_another_square_root(generator: torch.Generator) -> None:
    a = with_moments(torch.zeros(12, dtype=torch.float64), covariance(12, generator), 50, generator)
    b = with_moments(torch.ones(12, dtype=torch.float64), covariance(12, generator), 70, generator)
    assert frechet_distance(a, b) == pytest.approx(by_scipy(a, b), rel=1e-8)
    assert frechet_distance(a, b) == pytest.approx(frechet_distance(b, a), rel=1e-12)


def test_agrees_with_another_implementation() -> None:
    """By calculate_frechet_distance of pytorch-fid 0.3.0 the moments of these points are 7.735280283900334 apart."""
    i, j = torch.arange(40, dtype=torch.float64)[:, None], torch.arange(5, dtype=torch.float64)
    a, b = i * (j + 1) % 7 / 2 + i * j % 3, (i * (j + 2) + j * j) % 11 / 3 + i % 2 * j
    assert frechet_distance(a, b) == pytest.approx(7.735280283900334, rel=1e-12)
    assert frechet_distance(a, b[:-1]) != pytest.approx(7.735280283900334, rel=1e-3)  # negative control


def test_the_diagonal_alone_would_be_wrong(generator: torch.Generator) -> None:
    """Negative control: leaving out correlations misses the distance between N(0, C) and N(0, diag C)."""
    c = torch.tensor([[1.0, 0.9], [0.9, 1.0]], dtype=torch.float64)
    zero = torch.zeros(2, dtype=torch.float64)
    a, b = with_moments(zero, c, 30, generator), with_moments(zero, torch.eye(2, dtype=torch.float64), 30, generator)
    diagonal = (a.var(0).sqrt() - b.var(0).sqrt()).square().sum().item()
    assert diagonal < 1e-12
    assert frechet_distance(a, b) == pytest.approx(4 - 2 * (math.sqrt(1.9) + math.sqrt(0.1)), rel=1e-9)


@pytest.mark.parametrize("n", [5, 20, 21, 200])
def test_fewer_samples_than_features(n: int, generator: torch.Generator) -> None:
    """Rank-deficient covariances: zero for a set and itself, the plain shift for a shifted copy."""
    a = torch.randn(n, 20, generator=generator)
    shift = torch.zeros(20)
    shift[3] = 2.0
    assert frechet_distance(a, a) <= 1e-10 * a.square().sum()
    assert frechet_distance(a, a + shift) == pytest.approx(4.0, abs=1e-4)
    constant = torch.zeros(n, 20)
    assert frechet_distance(a, constant) == pytest.approx(
        a.double().mean(0).square().sum().item() + a.double().var(0).sum().item(), rel=1e-9
    )


def test_error_covers_and_floor_is_low(generator: torch.Generator) -> None:
    """Over repeated draws the jackknife error is the standard deviation of the score, within sampling accuracy."""
    network = FeatureNetwork("identity", nn.Identity(), 4)
    real = torch.randn(2000, 4, generator=generator)
    scores = [
        frechet_score(real, 1.5 * torch.randn(400, 4, generator=generator) + 0.5, network, floor=[0.0, 0.0])
        for _ in range(60)
    ]
    spread = torch.tensor([score.value for score in scores]).std().item()
    typical = torch.tensor([score.error for score in scores]).square().mean().sqrt().item()
    assert 0.6 < typical / spread < 1.6
    floors = frechet_floor(real, generator=generator)
    assert max(floors) < 0.1 < min(score.value for score in scores)
    few = frechet_floor(real, n_first=20, generator=generator)  # as biased as a score of twenty samples
    assert min(few) > max(floors)


def test_the_score_says_what_it_is(generator: torch.Generator) -> None:
    network = FeatureNetwork("identity", nn.Identity(), 4)
    x = torch.randn(200, 4, generator=generator)
    text = str(frechet_score(x[:120], x[120:], network, generator=generator))
    assert all(part in text for part in ("identity", "4 features", "80 samples", "120 real images", "floor", "±"))
    assert FrechetScore(1, 1, 1, 1, "FID", "Inception", 2048, 5, 5).__str__().startswith("FID (Inception, 2048")


def test_errors_say_what_to_do() -> None:
    x = torch.zeros(10, 3)
    with pytest.raises(ValueError, match="same features"):
        frechet_distance(x, torch.zeros(10, 4))
    with pytest.raises(ValueError, match="must be finite"):
        frechet_distance(x, x / 0)
    with pytest.raises(ValueError, match=r"\(n, n_features\)"):
        frechet_distance(x, torch.zeros(10))
    with pytest.raises(ValueError, match="n_blocks"):
        frechet_score(x, x, FeatureNetwork("identity", nn.Identity(), 3))
    with pytest.raises(ValueError, match="n_halvings"):
        frechet_floor(x, n_halvings=1)
    with pytest.raises(ValueError, match="must leave 2"):
        frechet_floor(x, n_first=len(x) - 1)
