"""Paired differences: their errors are those of the pairs, and the simple laws are what they say."""

from __future__ import annotations

import math

import pytest
import torch

import harmonium as hm
from harmonium.evaluation.baselines import gaussian_log_density, independent_log_likelihood, simple_laws
from harmonium.evaluation.compare import exactly, paired_difference, standard_errors
from harmonium.testing import ALL_UNITS, scatter


def test_a_paired_difference_has_the_error_of_the_pairs(generator: torch.Generator) -> None:
    """Hard samples are hard for both: the difference is known 100 times better than either mean."""
    n, hits = 400, 0
    for _ in range(60):
        hard = 10 * torch.randn(n, generator=generator)
        first, second = hard + 0.1 * torch.randn(n, generator=generator) + 0.02, hard
        difference = paired_difference(exactly(first), exactly(second))
        assert difference.spread < 0.02 * exactly(first).mean().spread
        hits += abs(difference.value - 0.02) < 2 * difference.spread
    assert hits >= 45  # of 60 at 0.954: fewer than 45 with probability below 1e-6


def test_errors_of_log_z_add_up_and_stay() -> None:
    first = hm.types.Estimate(torch.tensor([-1.0, -3.0]), 0.3, torch.tensor([-1.9, -3.9]), torch.tensor([-0.1, -2.1]),
                              "sandwich", at_least=torch.tensor([-2.0, -4.0]))  # fmt: skip
    second = hm.types.Estimate(torch.tensor([-2.0, -3.5]), 0.4, torch.tensor([-3.2, -4.7]), torch.tensor([-0.8, -2.3]),
                               "ais", trusted=False, note="few chains", at_most=torch.tensor([-0.5, -2.0]))  # fmt: skip
    found = paired_difference(first, second)
    assert found.value == pytest.approx(0.75) and found.error == pytest.approx(0.5)
    assert (found.lower, found.upper) == (pytest.approx(-2.9 + 1.55), pytest.approx(-1.1 + 3.95))
    assert found.at_least == pytest.approx(-3.0 + 1.25) and found.at_most == math.inf
    assert not found.trusted and found.note == "second: few chains" and found.kind == "sandwich and ais"
    assert standard_errors(found) == pytest.approx(0.75 / math.hypot(0.5, 0.25))


def test_what_is_not_paired_is_refused() -> None:
    with pytest.raises(ValueError, match="needs the same samples on both sides. Got 3 and 2"):
        paired_difference(exactly(torch.zeros(3)), exactly(torch.zeros(2)))
    with pytest.raises(ValueError, match="`second` is a single number"):
        paired_difference(exactly(torch.zeros(3)), exactly(torch.zeros(3)).mean())


@pytest.mark.parametrize("make", [make for make in ALL_UNITS if make().proper], ids=lambda make: repr(make()))
def test_independent_units_are_a_machine_without_weights(make, generator: torch.Generator) -> None:  # type: ignore[no-untyped-def]
    """The law has the likelihood of an RBM whose weights are zero and whose bias is the fitted field."""
    units = make().double()
    field = 0.4 * torch.randn(units.shape, dtype=torch.float64, generator=generator)
    train, x = (units.sample(field.expand(n, *units.shape), generator=generator).detach() for n in (200, 20))
    found = independent_log_likelihood(units, x, train)
    rbm = hm.RBM(units, hm.Bernoulli(1)).double()
    units.fit_parameters(train)
    with torch.no_grad():
        rbm.weight.zero_()
        rbm.visible_bias.copy_(units.fitted_field(train))
    log_z = hm.types.Estimate(rbm.visible.total(rbm.visible.log_partition(rbm.visible_bias)).item() + math.log(2),
                              0.0, 0.0, 0.0, "exact")  # fmt: skip
    torch.testing.assert_close(found, hm.log_likelihood(rbm, x, log_z=log_z).value, rtol=1e-9, atol=1e-9)


def test_simple_laws_of_each_kind_of_data(generator: torch.Generator) -> None:
    x = torch.randn(5000, 2, generator=generator) @ torch.tensor([[1.0, 0.9], [0.0, 0.3]])
    laws = simple_laws(x, x, units=hm.Gaussian(2))
    assert set(laws) == {"independent units", "a single Gaussian"}
    entropy = 1 + math.log(2 * math.pi) + math.log(0.3)  # of the law that the data are drawn from
    assert laws["a single Gaussian"].mean().item() == pytest.approx(-entropy, abs=0.1)
    assert laws["independent units"].mean() < laws["a single Gaussian"].mean() - 0.5
    boxed = simple_laws(x, x, box=(-4.0, 4.0))
    assert set(boxed) == {"a single Gaussian", "the uniform law"}
    assert boxed["the uniform law"][0].item() == pytest.approx(-2 * math.log(8))
    assert set(simple_laws(x.round().abs(), x.round().abs(), units=hm.Poisson(2))) == {"independent units"}


def test_a_constant_value_buys_no_density() -> None:
    """With the floor of the units as ridge a column that never varies is as narrow as a unit may be, not narrower."""
    x = torch.cat([torch.randn(500, 1, generator=torch.Generator().manual_seed(0)), torch.zeros(500, 1)], 1)
    units = hm.Gaussian(2, floor=0.05)
    line = gaussian_log_density(x[:, :1], x[:, :1], ridge=0.05**2)
    most = -math.log(0.05 * math.sqrt(2 * math.pi))
    torch.testing.assert_close(simple_laws(x, x, units=units)["a single Gaussian"], line + most)


def test_a_trained_machine_is_compared_in_pairs(generator: torch.Generator) -> None:
    rbm = scatter(hm.RBM(hm.Bernoulli(4), hm.Bernoulli(3)))
    x = hm.sample(rbm, 500, n_steps=50, generator=generator)
    found = paired_difference(
        hm.log_likelihood(rbm, x), exactly(simple_laws(x, x, units=rbm.visible)["the uniform law"])
    )
    assert found.kind == "exact" and found.value > 0 and found.n_samples == 500
