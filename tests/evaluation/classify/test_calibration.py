"""Calibration against hand cases, scikit-learn's calibration curve, and labels drawn from the probabilities."""

from __future__ import annotations

import math

import pytest
import torch
from sklearn.calibration import calibration_curve

from harmonium.evaluation.classify.calibration import expected_calibration_error, reliability


def test_by_hand() -> None:
    probabilities = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.0, 1.0]], dtype=torch.float64)
    labels = torch.tensor([0, 1, 1, 1])
    bins = reliability(probabilities, labels, n_bins=4)  # (0.5, 0.75] holds 0.6; (0.75, 1] holds 0.9, 0.8, 1.0
    assert bins.lower.tolist() == [0.5, 0.75]
    assert bins.upper.tolist() == [0.75, 1.0]
    assert bins.count.tolist() == [1, 3]
    assert bins.confidence.tolist() == pytest.approx([0.6, 0.9])
    assert bins.accuracy.tolist() == pytest.approx([1.0, 2 / 3])
    assert expected_calibration_error(probabilities, labels, n_bins=4) == pytest.approx((0.4 + 3 * (0.9 - 2 / 3)) / 4)


def test_edges_belong_to_the_bin_below_and_ties_to_the_first_class() -> None:
    bins = reliability(torch.tensor([[0.5, 0.5]]), torch.tensor([0]), n_bins=2)
    assert bins.upper.item() == 0.5
    assert bins.accuracy.item() == 1.0
    assert reliability(torch.tensor([[0.5, 0.5]]), torch.tensor([1]), n_bins=2).accuracy.item() == 0.0


@pytest.mark.parametrize("n_bins", [1, 7, 15])
def test_equal_to_scikit_learn(n_bins: int) -> None:
    generator = torch.Generator().manual_seed(0)
    probabilities = torch.randn(500, 4, generator=generator, dtype=torch.float64).softmax(-1)
    labels = torch.randint(4, (500,), generator=generator)
    confidence, prediction = probabilities.max(-1)
    correct = (prediction == labels).int()
    accuracy, mean = calibration_curve(correct.numpy(), confidence.numpy(), n_bins=n_bins)
    bins = reliability(probabilities, labels, n_bins)
    assert bins.accuracy.tolist() == pytest.approx(accuracy.tolist())
    assert bins.confidence.tolist() == pytest.approx(mean.tolist())
    assert bins.count.sum() == 500


def test_small_when_labels_follow_the_probabilities_and_large_when_overconfident() -> None:
    # each bin's gap has standard deviation at most ½/√count, so the mean error is below Σ √count / 2n ≤ ½ √(bins/n),
    # 0.011 here; four times that has a false-alarm rate below 1e-6 (McDiarmid: exp(-2n·0.033²))
    generator = torch.Generator().manual_seed(1)
    n, n_bins = 30_000, 15
    logits = 2 * torch.randn(n, 3, generator=generator)
    labels = torch.multinomial(logits.softmax(-1), 1, generator=generator).squeeze(-1)
    bound = 4 * 0.5 * math.sqrt(n_bins / n)
    assert expected_calibration_error(logits.softmax(-1), labels) < bound
    assert expected_calibration_error((3 * logits).softmax(-1), labels) > bound


def test_errors_say_what_to_do() -> None:
    good, labels = torch.full((3, 2), 0.5), torch.zeros(3, dtype=torch.long)
    with pytest.raises(ValueError, match=r"softmax"):
        reliability(torch.randn(3, 2) * 10, labels)
    with pytest.raises(ValueError, match=r"softmax"):
        reliability(good * math.nan, labels)
    with pytest.raises(ValueError, match=r"n_classes"):
        reliability(good[:, 0], labels)
    with pytest.raises(ValueError, match=r"n_classes"):
        reliability(good[:0], labels[:0])
    with pytest.raises(ValueError, match=r"0\.\.1"):
        reliability(good, labels + 2)
    with pytest.raises(TypeError, match=r"long"):
        reliability(good, labels.float())
    with pytest.raises(ValueError, match=r"n_bins"):
        reliability(good, labels, n_bins=0)
