"""Transforms against closed forms. A statistical check raises a false alarm with probability below 6e-7 (5σ)."""

from __future__ import annotations

import math

import pytest
import torch

from harmonium import native
from harmonium.data import BinarizeEachTime, binarize, dequantize, scale, standardize, unstandardize, whiten

SIGMAS = 5.0


def bias_in_sigmas(draws: torch.Tensor, probability: torch.Tensor) -> float:
    """Return how many standard errors the mean of all draws is from the mean probability."""
    p = probability.double()
    error = (p * (1 - p)).sum().sqrt()
    return float((draws.double().sum() - p.sum()).abs() / error)


def test_threshold_is_strict_at_half() -> None:
    x = torch.tensor([0, 127, 128, 255], dtype=torch.uint8)
    assert binarize(x, "threshold").tolist() == [0, 0, 1, 1]
    assert binarize(torch.tensor([8, 9]), "threshold", levels=16).tolist() == [0, 1]
    assert binarize(torch.tensor([0.5, 0.51]), "threshold").tolist() == [0, 1]


def test_sampled_binarization_has_the_right_mean(generator: torch.Generator) -> None:
    x = torch.arange(256, dtype=torch.uint8).repeat(400, 1)
    y = binarize(x, "sample", generator=generator)
    assert y.dtype == torch.uint8
    assert set(y.unique().tolist()) == {0, 1}
    assert not y[:, 0].any() and y[:, 255].all()
    assert bias_in_sigmas(y, x / 255) < SIGMAS
    assert bias_in_sigmas(y, x / 280) > SIGMAS  # a wrong scale is seen


def test_each_call_resamples_and_repeats_with_its_generator() -> None:
    x = torch.full((64, 64), 128, dtype=torch.uint8)
    transform = BinarizeEachTime(255)
    first = transform(x, generator=torch.Generator().manual_seed(1))
    again = transform(x, generator=torch.Generator().manual_seed(1))
    other = transform(x, generator=torch.Generator().manual_seed(2))
    assert first.is_floating_point()
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert bias_in_sigmas(other, x / 255) < SIGMAS
    assert "anew" in transform.description


@pytest.mark.parametrize("levels", [16, 255])
def test_dequantize_is_uniform_within_its_cell(levels: int, generator: torch.Generator) -> None:
    x = torch.arange(levels + 1).repeat(1000, 1)
    y = dequantize(x, levels, generator=generator)
    assert float(y.min()) >= 0 and float(y.max()) <= 1
    inside = y.double() * (levels + 1) - x
    assert float(inside.min()) > -1e-4 and float(inside.max()) < 1 + 1e-4
    assert abs(float(inside.mean()) - 0.5) < SIGMAS / math.sqrt(12 * x.numel())


def test_scale_and_its_errors() -> None:
    assert scale(torch.tensor([0, 8, 16]), 16).tolist() == [0, 0.5, 1]
    assert scale(torch.tensor([float("nan"), 1.0])).isnan().tolist() == [True, False]
    with pytest.raises(ValueError, match=r"must lie in 0\.\.16"):
        scale(torch.tensor([17.0]), 16)
    with pytest.raises(ValueError, match="`levels` must be given"):
        scale(torch.tensor([1, 2]))
    with pytest.raises(ValueError, match="`how` must be"):
        binarize(torch.zeros(2), "round")
    with pytest.raises(ValueError, match="missing values"):
        binarize(torch.tensor([[float("nan"), 1.0]]), "sample")


def test_standardize_and_back(generator: torch.Generator) -> None:
    x = torch.empty(500, 3, dtype=torch.float64).normal_(generator=generator) * torch.tensor([1.0, 5.0, 0.0]) + 7
    y, mean, std = standardize(x)
    assert torch.allclose(y.mean(0), torch.zeros(3, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(y[:, :2].std(0, correction=0), torch.ones(2, dtype=torch.float64))
    assert float(std[2]) == pytest.approx(0.01 * float(std.max()))
    assert torch.allclose(unstandardize(y, mean, std), x, atol=1e-12)


def test_standardize_leaves_missing_values_out() -> None:
    x = torch.tensor([[0.0, 1.0], [2.0, float("nan")], [4.0, 3.0]])
    y, mean, _ = standardize(x)
    assert mean.tolist() == [2.0, 2.0]
    assert y.isnan().sum() == 1 and bool(y[1, 1].isnan())


def test_standardize_all_constant() -> None:
    y, _, std = standardize(torch.full((4, 2), 3.0))
    assert y.tolist() == [[0, 0]] * 4 and std.tolist() == [1, 1]


def test_whitening_makes_the_covariance_the_identity(generator: torch.Generator) -> None:
    mix = torch.empty(6, 6, dtype=torch.float64).normal_(generator=generator)
    x = (torch.empty(2000, 6, dtype=torch.float64).normal_(generator=generator) @ mix + 3).view(-1, 2, 3)
    whitening = whiten(x, eps=1e-10)
    y = whitening.apply(x)
    assert y.shape == x.shape
    assert torch.allclose(y.flatten(1).T.cov(correction=0), torch.eye(6, dtype=torch.float64), atol=1e-5)
    assert torch.allclose(whitening.invert(y), x, atol=1e-8)
    assert torch.allclose(whitening.matrix, whitening.matrix.T)  # ZCA: symmetric, unlike PCA whitening
    assert not torch.allclose(x.flatten(1).T.cov(correction=0), torch.eye(6, dtype=torch.float64), atol=1e-1)


def test_whitening_of_degenerate_data_is_finite() -> None:
    x = torch.tensor([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]])
    whitening = whiten(x)
    assert whitening.apply(x).abs().max() == 0
    with pytest.raises(ValueError, match="`eps` must be positive"):
        whiten(x, eps=0)
    with pytest.raises(ValueError, match="infinite"):
        standardize(torch.tensor([[float("inf")], [1.0]]))
    with pytest.raises(ValueError, match="must be finite"):
        whiten(torch.tensor([[float("nan")]]))


def test_a_seed_binarizes_alike_without_the_compiled_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.arange(256, dtype=torch.uint8).repeat(40, 1)
    first = binarize(x, "sample", generator=torch.Generator().manual_seed(1))
    monkeypatch.setattr(native, "LIBRARY", None)
    assert torch.equal(first, binarize(x, "sample", generator=torch.Generator().manual_seed(1)))
