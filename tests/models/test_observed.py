"""Rows of which a part is known: sums, draws and means against enumeration and quadrature."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from harmonium.models import RBM
from harmonium.models.observed import counted_log_z, draw_observed, observed_energy, observed_hidden_mean
from harmonium.partition import exact_log_z
from harmonium.units import Bernoulli, Categorical, Gaussian, Mixed, MultivariateGaussian

NAN = math.nan


@pytest.fixture
def rbm() -> RBM:
    """A correlated pair, a category and a bit over a category and two bits, with parameters that matter."""
    generator = torch.Generator().manual_seed(3)
    pair = MultivariateGaussian(2)
    pair.set_covariance(torch.tensor([[1.0, 0.8], [0.8, 1.3]]))
    machine = RBM(Mixed(pair, Categorical(1, 3), Bernoulli(1)), Mixed(Categorical(1, 3), Bernoulli(2))).double()
    with torch.no_grad():
        for p in machine.parameters():
            p.add_(0.5 * torch.randn(p.shape, generator=generator, dtype=torch.float64))
    return machine


ROW = torch.tensor([[0.3, -0.7, 0.0, 1.0, 0.0, 1.0]], dtype=torch.float64)


@torch.no_grad()
def weight(rbm: RBM, x: Tensor) -> Tensor:
    return -rbm.energy(x)


def log_p(rbm: RBM, x: Tensor) -> float:
    """Return `-F(x_o)` of one row."""
    return float(-observed_energy(rbm, x).detach())


def holed(*places: int) -> Tensor:
    x = ROW.clone()
    x[:, list(places)] = NAN
    return x


def line(place: int, x: Tensor, n: int = 4001, reach: float = 25.0) -> tuple[Tensor, float]:
    """Return copies of a row with one real value along a grid, and the logarithm of its step."""
    grid = torch.linspace(-reach, reach, n, dtype=torch.float64)
    rows = x.repeat(n, 1)
    rows[:, place] = grid
    return rows, math.log(2 * reach / (n - 1))


def test_log_z_is_the_counted_one(rbm: RBM) -> None:
    assert float(counted_log_z(rbm).detach()) == pytest.approx(exact_log_z(rbm).value, abs=1e-10)


def test_a_row_without_holes_has_its_free_energy(rbm: RBM) -> None:
    assert torch.allclose(observed_energy(rbm, ROW), rbm.energy(ROW), atol=1e-12)


def test_levels_are_summed_out(rbm: RBM) -> None:
    states = []
    for level in range(3):
        for bit in (0.0, 1.0):
            x = ROW.clone()
            x[:, 2:5] = torch.eye(3)[level]
            x[:, 5] = bit
            states.append(weight(rbm, x))
    exact = torch.cat(states).logsumexp(0)
    assert log_p(rbm, holed(2, 3, 4, 5)) == pytest.approx(float(exact), abs=1e-10)


def test_a_number_is_integrated_out(rbm: RBM) -> None:
    rows, log_step = line(0, ROW)
    exact = float(weight(rbm, rows).logsumexp(0)) + log_step
    found = log_p(rbm, holed(0))
    assert found == pytest.approx(exact, abs=1e-9)
    independent = Gaussian(2)  # a control: the same machine without the correlation has another marginal
    with torch.no_grad():
        independent.log_sigma.copy_(rbm.visible.parts[0].covariance.detach().diagonal().sqrt().log())  # type: ignore[union-attr, operator]
    other = RBM(Mixed(independent, Categorical(1, 3), Bernoulli(1)), rbm.hidden).double()
    assert log_p(other, holed(0)) != pytest.approx(exact, abs=1e-2)


def test_both_numbers_are_integrated_out_by_batches_of_patterns(rbm: RBM) -> None:
    grid = torch.linspace(-22.0, 22.0, 441, dtype=torch.float64)
    rows = ROW.repeat(441 * 441, 1)
    rows[:, :2] = torch.cartesian_prod(grid, grid)
    exact = float(weight(rbm, rows).logsumexp(0)) + 2 * math.log(0.1)
    mixed = torch.cat([holed(0, 1), ROW, holed(1), holed(0, 1, 5)])
    found = -observed_energy(rbm, mixed).detach()
    assert float(found[0]) == pytest.approx(exact, abs=1e-8)
    assert torch.allclose(found[1:3], torch.cat([-observed_energy(rbm, ROW), -observed_energy(rbm, holed(1))]))


def test_an_empty_row_has_log_z(rbm: RBM) -> None:
    nothing = torch.full_like(ROW, NAN)
    assert log_p(rbm, nothing) == pytest.approx(float(counted_log_z(rbm).detach()), abs=1e-10)


def test_gradient_is_that_of_finite_differences(rbm: RBM) -> None:
    x = torch.cat([holed(0), holed(1, 5), ROW])
    parameters = list(rbm.parameters())
    slopes = torch.autograd.grad(observed_energy(rbm, x).sum(), parameters)
    for p, slope in zip(parameters, slopes, strict=True):
        with torch.no_grad():
            place = (0,) * p.ndim
            p[place] += 1e-5
            above = float(observed_energy(rbm, x).sum())
            p[place] -= 2e-5
            below = float(observed_energy(rbm, x).sum())
            p[place] += 1e-5
        assert float(slope[place]) == pytest.approx((above - below) / 2e-5, abs=1e-6)


def test_draws_follow_the_conditional(rbm: RBM, generator: torch.Generator) -> None:
    """Mean and spread of a number, and the share of a bit, given the rest: false alarms below 1e-6 (5 errors)."""
    rows, _ = line(0, ROW)
    share = weight(rbm, rows).softmax(0).detach()
    mean = float((share * rows[:, 0]).sum())
    std = math.sqrt(float((share * (rows[:, 0] - mean).square()).sum()))
    n = 40_000
    drawn = draw_observed(rbm, holed(0).repeat(n, 1), generator=generator)
    assert torch.equal(drawn[:, 1:], ROW.repeat(n, 1)[:, 1:]), "what is known stays"
    assert abs(float(drawn[:, 0].mean()) - mean) < 5 * std / math.sqrt(n)
    assert float(drawn[:, 0].std()) == pytest.approx(std, rel=0.03)
    zero, one = ROW.clone(), ROW.clone()
    zero[:, 5], one[:, 5] = 0.0, 1.0
    p = float(torch.cat([weight(rbm, zero), weight(rbm, one)]).softmax(0)[1])
    bits = draw_observed(rbm, holed(5).repeat(n, 1), generator=generator)[:, 5]
    assert abs(float(bits.mean()) - p) < 5 * math.sqrt(p * (1 - p) / n)


def test_features_of_a_row_with_holes(rbm: RBM) -> None:
    rows, _ = line(0, ROW)
    share = weight(rbm, rows).softmax(0)
    exact = share @ rbm.hidden_mean(rows)
    assert torch.allclose(observed_hidden_mean(rbm, holed(0))[0], exact, atol=1e-9)


def test_too_many_hidden_states_are_an_error_in_words() -> None:
    with pytest.raises(ValueError, match=r"2\^20 configurations"):
        observed_energy(RBM(Bernoulli(2), Bernoulli(20)), torch.tensor([[NAN, 1.0]]))


def test_a_chain_refuses_half_of_a_vector(rbm: RBM) -> None:
    with pytest.raises(ValueError, match="in part"):
        rbm.visible.check_known(~holed(0).isnan(), "x")
