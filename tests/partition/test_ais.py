"""Annealed importance sampling, forward and reverse, against exact values."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import pytest
import torch

import harmonium as hm
from harmonium.partition.ais import weight_error
from harmonium.partition.path import MachinePath
from harmonium.partition.schedule import adapted_betas
from harmonium.testing import ALL_MACHINES, ContractError, ExactLaw, scatter, tiny_rbm
from harmonium.testing.partition import check_log_z, measure_coverage
from tests.partition.test_exact import PUBLISHED_LOG_Z, published_rbm

SOME = (
    "Bernoulli-Bernoulli",
    "Spin-Gaussian",
    "Gaussian-Bernoulli",
    "Categorical-Poisson",
    "Mixed-Binomial",
    "NReLU-Spin",
    "Boltzmann",
    "deep",
    "gated",
)
"""A machine for each kind of unit and of graph."""


BETAS = torch.linspace(0, 1, 20).tolist()


def melted(machine: hm.BoltzmannMachine, *, generator: torch.Generator) -> hm.Estimate:
    samples = ExactLaw(machine).draw(128, generator=generator)[machine.data_layer]
    return hm.partition.reverse_ais(machine, samples=samples, betas=BETAS, n_steps=4, generator=generator)


@pytest.mark.parametrize("name", SOME)
def test_forward_estimates_are_unbiased_and_covered(name: str, generator: torch.Generator) -> None:
    check_log_z(ALL_MACHINES[name](), n_runs=20, generator=generator)


@pytest.mark.parametrize("name", SOME)
def test_reverse_estimates_from_exact_samples(name: str, generator: torch.Generator) -> None:
    check_log_z(ALL_MACHINES[name](), melted, n_runs=20, generator=generator)


def test_the_bounds_of_a_hard_machine(generator: torch.Generator) -> None:
    """Forward below and reverse above the exact value on average: two chains and few temperatures show it."""
    rbm = scatter(hm.RBM(hm.Bernoulli(6), hm.Bernoulli(5)), scale=3.0, generator=torch.Generator().manual_seed(1))
    exact = hm.exact_log_z(rbm).value
    betas, n_runs = [0.0, 0.3, 0.6, 1.0], 100
    low = [hm.ais(rbm, n_chains=2, betas=betas, generator=generator).value for _ in range(n_runs)]
    x = ExactLaw(rbm).draw(2 * n_runs, generator=generator)["visible"].split(2)
    high = [hm.partition.reverse_ais(rbm, samples=rows, betas=betas, generator=generator).value for rows in x]
    for gaps in (exact - torch.tensor(low), torch.tensor(high) - exact):
        assert gaps.mean() > 5 * gaps.std() / math.sqrt(n_runs)  # not zero: the bound is a bound


def test_a_shifted_estimate_fails() -> None:
    def shifted(machine: hm.BoltzmannMachine, *, generator: torch.Generator) -> hm.Estimate:
        estimate = hm.ais(machine, n_chains=128, betas=BETAS, generator=generator)
        return replace(estimate, value=estimate.value + 0.05)

    with pytest.raises(ContractError, match="the mean of Ẑ/Z is .* standard errors from 1"):
        check_log_z(tiny_rbm("Bernoulli", "Bernoulli"), shifted)


def test_error_bars_that_are_too_short_fail() -> None:
    def bold(machine: hm.BoltzmannMachine, *, generator: torch.Generator) -> hm.Estimate:
        estimate = hm.ais(machine, n_chains=128, betas=BETAS, generator=generator)
        return replace(estimate, lower=estimate.value - estimate.error, upper=estimate.value + estimate.error)

    with pytest.raises(ContractError, match="intervals miss the exact value"):
        check_log_z(tiny_rbm("Bernoulli", "Bernoulli"), bold)


def test_reverse_from_samples_of_another_law_fails() -> None:
    def wrong(machine: hm.BoltzmannMachine, *, generator: torch.Generator) -> hm.Estimate:
        samples = ExactLaw(tiny_rbm("Bernoulli", "Spin")).draw(128, generator=generator)["visible"]
        return hm.partition.reverse_ais(machine, samples=samples, betas=[0.0, 0.5, 1.0], generator=generator)

    with pytest.raises(ContractError):
        check_log_z(scatter(hm.RBM(hm.Bernoulli(4), hm.Bernoulli(4)), scale=2.0), wrong, n_runs=30)


def test_coverage_on_random_machines(generator: torch.Generator) -> None:
    """The interval holds at 99 %: more than 4 misses in 40 come by chance once in 10⁴; median error under 0.02 nat."""
    coverage = measure_coverage(
        functools.partial(hm.ais, n_chains=256, n_betas=300), n_machines=40, generator=generator
    )
    assert coverage.covered >= 36 / 40, str(coverage)
    assert coverage.median_error < 0.02, str(coverage)


def test_published_gaussian_rbm(generator: torch.Generator) -> None:
    estimate = hm.ais(published_rbm(), n_chains=1000, n_betas=300, generator=generator)
    assert estimate.lower < PUBLISHED_LOG_Z < estimate.upper
    assert estimate.error < 0.05
    backward = hm.partition.reverse_ais(published_rbm(), n_chains=1000, n_betas=300, n_steps=50, generator=generator)
    assert backward.lower < PUBLISHED_LOG_Z < backward.upper


def test_without_couplings_there_is_nothing_to_estimate(generator: torch.Generator) -> None:
    rbm = scatter(hm.RBM(hm.Bernoulli(40), hm.Spin(30)))
    with torch.no_grad():
        rbm.weight.zero_()
    expected = rbm.visible_bias.exp().log1p().sum() + (2 * rbm.hidden_bias.cosh()).log().sum()
    estimate = hm.ais(rbm, n_chains=8, n_betas=5, generator=generator)
    assert estimate.value == pytest.approx(expected.item(), abs=1e-9)
    assert estimate.error == pytest.approx(0.0, abs=1e-6)
    assert estimate.ess == pytest.approx(8.0)


def test_single_and_double_precision_agree(generator: torch.Generator) -> None:
    rbm = scatter(hm.RBM(hm.Bernoulli(12), hm.Bernoulli(12)), scale=1.0)
    exact = hm.exact_log_z(rbm).value
    for dtype in (torch.float32, torch.float64):
        estimate = hm.ais(rbm.to(dtype), n_chains=256, n_betas=300, generator=generator)
        assert abs(estimate.value - exact) < 5 * estimate.error + 1e-3


def test_a_reference_fitted_to_data(generator: torch.Generator) -> None:
    """Any reference is right; one at the means of the model is better than its biases, which here say the opposite."""
    rbm = hm.RBM(hm.Bernoulli(10), hm.Bernoulli(10)).double()
    with torch.no_grad():
        rbm.weight.fill_(1.0)
        rbm.visible_bias.fill_(-3.0)
        rbm.hidden_bias.fill_(3.0)
    exact = hm.exact_log_z(rbm).value
    x = hm.sample(rbm, 500, n_steps=50, generator=generator)
    fitted = rbm.visible.fitted_field(x)
    assert MachinePath(rbm, fitted).log_z0() == pytest.approx(
        (fitted.exp().log1p().sum() + rbm.hidden_bias.exp().log1p().sum()).item()
    )
    plain = hm.ais(rbm, n_chains=200, n_betas=20, generator=generator)
    better = hm.ais(rbm, n_chains=200, n_betas=20, reference=fitted, generator=generator)
    assert better.error < plain.error
    for estimate in (plain, better):
        assert abs(estimate.value - exact) < 5 * estimate.error
    named = hm.ais(rbm, n_chains=200, n_betas=20, reference={"visible": fitted}, generator=generator)
    assert abs(named.value - exact) < 5 * named.error


def test_given_temperatures_are_used(generator: torch.Generator) -> None:
    rbm = tiny_rbm("Bernoulli", "Bernoulli")
    calls: list[tuple[int, int]] = []
    hm.ais(rbm, betas=[0.0, 0.3, 1.0], n_chains=8, generator=generator, on_beta=lambda i, n: calls.append((i, n)))
    assert calls == [(1, 2), (2, 2)]
    calls.clear()
    hm.partition.reverse_ais(
        rbm, betas=torch.tensor([0.0, 0.3, 1.0]), n_chains=8, n_steps=1, generator=generator,
        on_beta=lambda i, n: calls.append((i, n)),
    )  # fmt: skip
    assert calls == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    "betas", [[0.0], [0.0, 0.5], [0.1, 1.0], [0.0, 0.5, 0.5, 1.0], [0.0, 0.7, 0.4, 1.0], [0.0, math.nan, 1.0]]
)
def test_bad_temperatures(betas: list[float]) -> None:
    for estimator in (hm.ais, hm.partition.reverse_ais):
        with pytest.raises(ValueError, match="`betas` must rise strictly from 0 to 1"):
            estimator(tiny_rbm("Bernoulli", "Bernoulli"), betas=betas)


def test_bad_counts() -> None:
    with pytest.raises(ValueError, match="`n_betas` must be at least 2.*Got 1"):
        hm.ais(tiny_rbm("Bernoulli", "Bernoulli"), n_betas=1)
    with pytest.raises(ValueError, match="`n_chains` must be at least 2.*Got 1"):
        hm.ais(tiny_rbm("Bernoulli", "Bernoulli"), n_chains=1, n_betas=10)


def test_parameters_that_are_not_finite(generator: torch.Generator) -> None:
    rbm = tiny_rbm("Gaussian", "Bernoulli")
    with torch.no_grad():
        rbm.visible_bias[0] = torch.inf
    with pytest.raises(ValueError, match="energies are not finite. Check its parameters"):
        hm.ais(rbm, n_chains=8, n_betas=10, generator=generator)


def test_the_schedule_rises_and_is_dense_where_the_law_changes(generator: torch.Generator) -> None:
    betas = adapted_betas(MachinePath(tiny_rbm("Bernoulli", "Bernoulli")), 50, generator=generator)
    assert len(betas) == 50
    assert betas[0] == 0
    assert betas[-1] == 1
    assert bool((betas.diff() > 0).all())
    # A mean-field magnet of spins orders at β = 1/2: the temperatures crowd there.
    magnet = hm.RBM(hm.Spin(60), hm.Spin(60)).double()
    with torch.no_grad():
        magnet.weight.fill_(2.0 / 60)
    betas = adapted_betas(MachinePath(magnet), 200, generator=generator)
    near, far = ((betas - center).abs() < 0.1 for center in (0.55, 0.15))
    assert near.sum() > 1.3 * far.sum()


def test_the_jackknife_error_of_known_weights(generator: torch.Generator) -> None:
    """For n log-normal weights of variance s² the error of log mean w is √((e^{s²} - 1)/n) for large n."""
    s, n = 0.5, 20000
    log_weights = s * torch.empty(n, dtype=torch.float64).normal_(generator=generator)
    assert weight_error(log_weights) == pytest.approx(math.sqrt(math.expm1(s**2) / n), rel=0.1)
    assert weight_error(torch.zeros(100, dtype=torch.float64)) == 0.0


def test_same_generator_same_estimate() -> None:
    rbm = tiny_rbm("Gaussian", "Bernoulli")
    first, second, other = (
        hm.ais(rbm, n_chains=16, n_betas=10, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    assert first == second
    assert first.value != other.value
