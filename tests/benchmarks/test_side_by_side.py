"""The statistics of two revisions in turn: planted ratios come back."""

from __future__ import annotations

import pytest

from benchmarks.side_by_side import summary


def test_a_planted_ratio_comes_back_whatever_slows_the_machine_down() -> None:
    slowness = [1.0, 3.0, 1.2, 7.0, 2.0, 1.1, 5.0, 1.4, 1.0]
    middle, low, high, fastest = summary([(s, 1.25 * s) for s in slowness])
    assert (middle, low, high, fastest) == pytest.approx((1.25, 1.25, 1.25, 1.25))


def test_the_range_of_noisy_ratios_holds_their_median() -> None:
    ratios = [0.9, 1.1, 1.3, 1.0, 0.8, 1.2, 1.05]
    middle, low, high, _ = summary([(1.0, ratio) for ratio in ratios])
    assert middle == pytest.approx(1.05)
    assert 0.8 <= low < middle < high <= 1.3
