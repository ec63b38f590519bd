"""The Gaussian baselines: their moments are those of the data, their span that of the components."""

from __future__ import annotations

import pytest
import torch

from harmonium.laws import principal as gaussian_baselines
from harmonium.laws.principal import PCAGaussian, PixelGaussian


def test_pixel_moments_and_independence(generator: torch.Generator) -> None:
    base = torch.randn(4000, 1, generator=generator)
    x = torch.cat([base, base, 3 + 2 * torch.randn(4000, 1, generator=generator)], 1)
    fitted = PixelGaussian.fit(x)
    torch.testing.assert_close(fitted.mean, x.mean(0))
    torch.testing.assert_close(fitted.std, x.std(0, correction=0))
    drawn = fitted.sample(40_000, generator=generator)
    error = fitted.std / 200
    assert ((drawn.mean(0) - fitted.mean).abs() < 5 * error).all()
    assert abs(torch.corrcoef(drawn.T)[0, 1]) < 5 / 200  # tied in the data, independent here
    assert torch.corrcoef(x.T)[0, 1] > 0.999


@pytest.mark.parametrize("n", [40, 400])
def test_components_are_those_of_a_known_covariance(n: int, generator: torch.Generator) -> None:
    """Both ways of the fit, by covariance and by singular values, agree with numpy's eigenvalues."""
    axes = torch.linalg.qr(torch.randn(60, 60, dtype=torch.float64, generator=generator)).Q
    scales = torch.linspace(8, 0.1, 60, dtype=torch.float64)
    x = (torch.randn(n, 60, dtype=torch.float64, generator=generator) * scales) @ axes.T + 5
    fitted = PCAGaussian.fit(x.reshape(n, 3, 4, 5), 10)
    values, vectors = torch.linalg.eigh(torch.cov(x.T, correction=0))
    torch.testing.assert_close(fitted.variances, values.flip(0)[:10])
    overlap = (fitted.components @ vectors.flip(1)[:, :10]).abs().diagonal()
    torch.testing.assert_close(overlap, torch.ones(10, dtype=torch.float64))
    left = x - fitted.project(x.reshape(n, 3, 4, 5)).flatten(1)
    assert (left @ fitted.components.mT).abs().max() < 1e-9
    torch.testing.assert_close(left.square().sum(1).mean(), values.flip(0)[10:].sum())


@pytest.mark.parametrize("n", [40, 400])
def test_subspace_iteration_finds_the_same_components(
    n: int, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a falling spectrum, as images have, it agrees with the whole decomposition; with no iteration it does not."""
    scales = 10 * torch.arange(1, 121, dtype=torch.float64) ** -0.8
    axes = torch.linalg.qr(torch.randn(120, 120, dtype=torch.float64, generator=generator)).Q
    x = (torch.randn(n, 120, dtype=torch.float64, generator=generator) * scales) @ axes.T
    whole = PCAGaussian.fit(x, 12)
    monkeypatch.setattr(gaussian_baselines, "_LARGE", 100)
    found = PCAGaussian.fit(x, 12)
    torch.testing.assert_close(found.variances, whole.variances, rtol=1e-3, atol=0)
    torch.testing.assert_close(found.project(x), whole.project(x), rtol=0, atol=0.05 * x.std().item())
    monkeypatch.setattr(gaussian_baselines, "_ITERATIONS", 0)
    assert (PCAGaussian.fit(x, 12).variances / whole.variances - 1).abs().max() > 1e-2


def test_samples_have_the_covariance_of_the_components(generator: torch.Generator) -> None:
    x = torch.randn(500, 6, generator=generator) * torch.tensor([5.0, 3.0, 1.0, 0.5, 0.2, 0.1])
    fitted = PCAGaussian.fit(x, 2)
    drawn = fitted.sample(50_000, generator=generator)
    coordinates = (drawn - fitted.mean) @ fitted.components.mT
    variance = coordinates.var(0)
    assert ((variance / fitted.variances - 1).abs() < 5 * (2 / 50_000) ** 0.5).all()
    assert abs(torch.corrcoef(coordinates.T)[0, 1]) < 5 / 50_000**0.5
    torch.testing.assert_close(fitted.project(drawn), drawn, rtol=1e-3, atol=1e-4)  # nothing outside the span


def test_errors_say_what_to_do() -> None:
    x = torch.rand(10, 4)
    with pytest.raises(ValueError, match="n_components"):
        PCAGaussian.fit(x, 5)
    with pytest.raises(TypeError, match="floating-point"):
        PixelGaussian.fit(torch.zeros(5, 4, dtype=torch.uint8))
    with pytest.raises(ValueError, match="finite"):
        PixelGaussian.fit(x / 0)
    with pytest.raises(ValueError, match="at least 2"):
        PixelGaussian.fit(x[:1])
