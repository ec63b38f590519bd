"""Paired differences against McNemar's formula and against draws."""

from __future__ import annotations

import math

import pytest
import torch

from harmonium.evaluation.classify.error_difference import error_difference
from harmonium.testing.contract import FALSE_ALARM, normal_quantile


def test_one_seed_is_mcnemar() -> None:
    one, other, n = {1, 2, 3, 4, 9}, {3, 4, 5}, 50
    n10, n01 = len(one - other), len(other - one)
    value, error = error_difference([one], [other], n)
    assert value == pytest.approx((n10 - n01) / n)
    assert error == pytest.approx(math.sqrt(n10 + n01 - (n10 - n01) ** 2 / n) / n)
    unpaired = math.sqrt(5 / n * (1 - 5 / n) / n + 3 / n * (1 - 3 / n) / n)
    assert error < unpaired  # what both err on does not count
    assert error_difference([one], [one], n) == (0.0, 0.0)


def test_seeds_are_averaged_before_the_samples() -> None:
    value, error = error_difference([{0}, {1}], [set(), set()], 4)
    assert value == pytest.approx(0.25)
    assert error == pytest.approx(math.sqrt(((0.25**2) * 2 + (0.25**2) * 2) / 4 / 4))


def test_the_error_is_that_of_test_sets(generator: torch.Generator) -> None:
    """Over 400 test sets the differences scatter as the error says: their squares add up to a χ² of 400 ± 28."""
    n, ratios = 500, []
    for _ in range(400):
        hard = torch.rand(n, generator=generator)
        one, other = (torch.rand(n, generator=generator) < hard * p for p in (0.5, 0.3))
        sets = [[set(wrong.nonzero().flatten().tolist())] for wrong in (one, other)]
        value, error = error_difference(sets[0], sets[1], n)
        ratios.append((value - 0.1) / error)
    total = torch.tensor(ratios).square().sum().item()
    limit = normal_quantile(FALSE_ALARM)
    assert abs(total - 400) < limit * 30
    assert abs(4 * total - 400) > limit * 30  # negative control: errors half as large


def test_numbers_must_be_those_of_samples() -> None:
    with pytest.raises(ValueError, match="must be in 0..9"):
        error_difference([[10]], [[]], 10)
    with pytest.raises(ValueError, match="of one seed at least"):
        error_difference([], [[1]], 10)
