"""Two-sample statistics against double sums and closed forms; the permutation test's level and power."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from harmonium.evaluation.classifier_test import told_apart
from harmonium.evaluation.detectable import partly_gaussian, shifted, smallest_detectable
from harmonium.evaluation.two_sample import (
    PermutationTest,
    energy_distance,
    maximum_mean_discrepancy,
    permutation_test,
)

STATISTICS = [maximum_mean_discrepancy, energy_distance]
N_TESTS, N_PERMUTATIONS = 300, 99
# Dvoretzky-Kiefer-Wolfowitz: the empirical law of N_TESTS p-values is farther than this with probability below 1e-6
DKW = math.sqrt(math.log(2 / 1e-6) / (2 * N_TESTS))


def two(n: int, m: int, *shape: int, shift: float = 0.0, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, *shape, generator=generator, dtype=torch.float64)
    return x, torch.randn(m, *shape, generator=generator, dtype=torch.float64) + shift


def test_maximum_mean_discrepancy_is_its_double_sum() -> None:
    x, y = two(7, 9, 3)
    pooled = torch.cat([x, y])
    pairs = sorted(torch.dist(pooled[i], pooled[j]).item() for i in range(16) for j in range(i))
    sigma = pairs[(len(pairs) - 1) // 2]

    def k(a: Tensor, b: Tensor) -> float:
        return math.exp(-(torch.dist(a, b).item() ** 2) / (2 * sigma**2))

    xx = sum(k(a, b) for i, a in enumerate(x) for j, b in enumerate(x) if i != j) / (7 * 6)
    yy = sum(k(a, b) for i, a in enumerate(y) for j, b in enumerate(y) if i != j) / (9 * 8)
    xy = sum(k(a, b) for a in x for b in y) / (7 * 9)
    assert maximum_mean_discrepancy(x, y) == pytest.approx(xx + yy - 2 * xy, rel=1e-10)


def test_maximum_mean_discrepancy_is_unbiased() -> None:
    # mean over repetitions under equal laws, in units of its standard error: beyond 4.5 with probability below 1e-5
    values = torch.tensor([maximum_mean_discrepancy(*two(10, 15, 2, seed=seed)) for seed in range(400)])
    assert abs(values.mean() / values.std() * math.sqrt(len(values))) < 4.5
    assert values.min() < 0
    shifted = torch.tensor([maximum_mean_discrepancy(*two(10, 15, 2, shift=1.0, seed=seed)) for seed in range(400)])
    assert shifted.mean() / shifted.std() * math.sqrt(len(shifted)) > 4.5


def test_energy_distance_on_the_line_is_the_area_between_the_distribution_functions() -> None:
    x, y = two(30, 50, shift=0.3)
    points = torch.cat([x, y]).sort().values
    f = torch.searchsorted(x.sort().values, points, right=True) / 30.0
    g = torch.searchsorted(y.sort().values, points, right=True) / 50.0
    area = 2 * ((f - g).square()[:-1] * points.diff()).sum()
    assert energy_distance(x, y) == pytest.approx(area.item(), rel=1e-6)
    assert energy_distance(x, y) == pytest.approx(energy_distance(y, x), rel=1e-12)


def test_energy_distance_of_two_points_masses_and_of_equal_samples() -> None:
    assert energy_distance(torch.zeros(3, 2), torch.tensor([[3.0, 4.0]] * 5)) == pytest.approx(10.0)
    x, _ = two(20, 2, 2, 3)
    assert energy_distance(x, x.repeat(2, 1, 1)) == pytest.approx(0.0, abs=1e-12)


def test_energy_distance_of_normal_laws() -> None:
    # for N(0,1) and N(d,1): 2 E|N(d,2)| - 2·2/√π; the error comes from repetitions, 4.5 of them: below 1e-5
    d, n = 1.0, 200
    expected_absolute = 2 / math.sqrt(math.pi) * math.exp(-(d**2) / 4) + d * math.erf(d / 2)
    law = 2 * expected_absolute - 4 / math.sqrt(math.pi)
    bias = (2 / math.sqrt(math.pi)) * 2 / n  # the zero terms i = j
    values = torch.tensor([energy_distance(*two(n, n, shift=d, seed=seed)) for seed in range(60)])
    assert abs(values.mean() - law - bias) < 4.5 * values.std() / math.sqrt(60)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_discrete_and_identical_points(statistic: object) -> None:
    assert callable(statistic)
    assert statistic(torch.ones(4, 3), torch.ones(5, 3)) == pytest.approx(0.0, abs=1e-12)
    assert permutation_test(statistic, torch.ones(4, 3), torch.ones(5, 3), n_permutations=9).p_value == 1.0
    x = torch.zeros(20, 1)
    x[0] = 1  # nearly every distance is zero: the bandwidth is the median of the others
    assert math.isfinite(statistic(x, x.flip(0)))
    assert permutation_test(statistic, x, x.flip(0), n_permutations=99).p_value == 1.0  # ties despite rounding


def distance_from_uniform(p_values: list[float]) -> float:
    p = torch.tensor(p_values)
    u = torch.arange(1, N_PERMUTATIONS + 2) / (N_PERMUTATIONS + 1)
    return ((p[:, None] <= u + 1e-6).double().mean(0) - u).abs().max().item()


@pytest.mark.parametrize("statistic", STATISTICS)
def test_p_values_are_uniform_under_equal_laws_and_small_otherwise(statistic: object) -> None:
    assert callable(statistic)
    generator = torch.Generator().manual_seed(6)

    def p_values(shift: float) -> list[float]:
        samples = (two(12, 18, 2, shift=shift, seed=seed) for seed in range(N_TESTS))
        return [
            permutation_test(statistic, x, y, n_permutations=N_PERMUTATIONS, generator=generator).p_value
            for x, y in samples
        ]

    assert distance_from_uniform(p_values(0.0)) < DKW
    assert distance_from_uniform(p_values(0.8)) > DKW  # the same check fails when the laws differ


@pytest.mark.parametrize("statistic", STATISTICS)
def test_power_and_the_general_path(statistic: object) -> None:
    assert callable(statistic)
    x, y = two(100, 80, 4, shift=0.7)
    fast = permutation_test(statistic, x, y, n_permutations=99, generator=torch.Generator().manual_seed(7))
    assert fast == PermutationTest(statistic(x, y), 0.01)
    x, y = two(15, 10, 4, shift=0.3)
    fast = permutation_test(statistic, x, y, n_permutations=70, generator=torch.Generator().manual_seed(8))
    slow = permutation_test(
        lambda a, b: statistic(a, b), x, y, n_permutations=70, generator=torch.Generator().manual_seed(8)
    )
    assert fast.statistic == pytest.approx(slow.statistic, rel=1e-12)
    assert fast.p_value == slow.p_value  # the same permutations, one by one


def test_errors_say_what_to_do() -> None:
    x = torch.zeros(5, 2)
    for statistic in STATISTICS:
        with pytest.raises(ValueError, match="one shape"):
            statistic(x, torch.zeros(5, 3))
        with pytest.raises(ValueError, match="at least 2 points"):
            statistic(x, x[:1])
        with pytest.raises(ValueError, match="finite"):
            statistic(x, x / 0)
    with pytest.raises(ValueError, match="n_permutations"):
        permutation_test(energy_distance, x, x, n_permutations=0)
    with pytest.raises(ValueError, match="statistic"):
        permutation_test(lambda a, b: math.nan, x, x, n_permutations=3)


# --- power ------------------------------------------------------------------------------------------------------------
def test_the_smallest_detectable_shift_has_the_power_that_is_claimed(generator: torch.Generator) -> None:
    """Of 60 whole permutation tests at that size 48 find it on average; at a third of it far fewer do.

    The size is found from 40 deals, so that its power is 0.8 ± 0.063: fewer than 28 of 60 need five standard errors of
    both together, and so do more than 30 at a third of the size, whose power is below 0.2.
    """
    x = torch.randn(2000, 1, generator=generator)
    size = smallest_detectable(x, shifted, 2.0, n=60, m=60, generator=generator)
    assert size is not None
    # the z-test, which knows the law, finds δ = (1.96 + 0.84)·√(2/60) = 0.51 as often; no test finds much less
    assert 0.35 < size < 1.0

    def found(delta: float) -> int:
        hits = 0
        for _ in range(60):
            a, b = torch.randn(2, 60, 1, generator=generator)
            test = permutation_test(energy_distance, a, b + delta, n_permutations=99, generator=generator)
            hits += test.p_value <= 0.05
        return hits

    assert found(size) >= 28
    assert found(size / 3) <= 30


def test_a_difference_that_is_never_found_is_none(generator: torch.Generator) -> None:
    x = torch.randn(200, 2, generator=generator)
    assert smallest_detectable(x, lambda y, size, generator: y, 1.0, n=20, m=20, generator=generator) is None
    with pytest.raises(ValueError, match="cannot be dealt from 200"):
        smallest_detectable(x, shifted, 1.0, n=150, m=100, generator=generator)


def test_planted_differences(generator: torch.Generator) -> None:
    x = torch.randn(4000, 3, generator=generator) * torch.tensor([1.0, 2.0, 5.0])
    moved = shifted(x, 0.5, generator=generator) - x
    torch.testing.assert_close((moved / x.std(0)).norm(dim=1), torch.full((4000,), 0.5))
    ring = torch.nn.functional.normalize(x[:, :2])
    some = partly_gaussian(ring, 0.3, generator=generator)
    kept = (some == ring).all(1).double().mean().item()
    assert kept == pytest.approx(0.7, abs=4.9 * math.sqrt(0.21 / 4000))
    anew = partly_gaussian(ring, 1.0, generator=generator)
    torch.testing.assert_close(anew.T.cov(), ring.T.cov(), atol=0.08, rtol=0)
    assert torch.equal(partly_gaussian(ring, 0.0, generator=generator), ring)


def test_nearest_neighbors_tell_samples_apart_or_do_not(generator: torch.Generator) -> None:
    x, y = torch.randn(2, 2000, 2, generator=generator)
    same = told_apart(x, y, generator=generator)
    assert abs(same.accuracy - 0.5) <= 4.9 * math.sqrt(0.25 / same.n) and same.n == 2000
    far = told_apart(x, y + 2.0, generator=generator)
    # the best classifier cuts halfway: right with probability Φ(√2) = 0.921
    best = 0.9214
    assert best - 0.03 - 4.9 * far.error < far.accuracy < best + 4.9 * far.error
    with pytest.raises(ValueError, match="at least 4 points"):
        told_apart(x[:3], y)
