"""The likelihood of data: it sums to one, and carries the error of log Z."""

from __future__ import annotations

import math

import pytest
import torch

import harmonium as hm
from harmonium.testing import TINY_UNITS, tiny_boltzmann_machine, tiny_rbm

FINITE = ("Bernoulli", "Spin", "Categorical", "Binomial", "Multinary")


@pytest.mark.parametrize("hidden", TINY_UNITS)
@pytest.mark.parametrize("visible", FINITE)
def test_probabilities_sum_to_one(visible: str, hidden: str) -> None:
    rbm = tiny_rbm(visible, hidden)
    n = rbm.visible.n_configurations()
    estimate = hm.log_likelihood(rbm, rbm.visible.configurations(torch.arange(n)))
    assert estimate.kind == "exact"
    assert estimate.value.exp().sum().item() == pytest.approx(1.0, abs=1e-10)


def test_a_boltzmann_machine_sums_to_one() -> None:
    machine = tiny_boltzmann_machine()
    estimate = hm.log_likelihood(machine, machine.layer("x").configurations(torch.arange(16)))
    assert estimate.value.exp().sum().item() == pytest.approx(1.0, abs=1e-10)


def test_a_density_integrates_to_one() -> None:
    rbm = tiny_rbm("Gaussian", "Bernoulli")
    step = 0.1
    axis = torch.arange(-15, 15, step, dtype=torch.float64)
    density = hm.log_likelihood(rbm, torch.cartesian_prod(axis, axis)).value.exp()  # 90,000 rows: several chunks
    assert (density.sum() * step**2).item() == pytest.approx(1.0, abs=1e-9)


def test_independent_units_have_a_closed_form(generator: torch.Generator) -> None:
    rbm = hm.RBM(hm.Bernoulli(5), hm.Bernoulli(3)).double()
    with torch.no_grad():
        rbm.weight.zero_()
        rbm.visible_bias.normal_(generator=generator)
    x = rbm.initial(20, generator=generator)["visible"]
    p = rbm.visible_bias.sigmoid()
    expected = (x * p.log() + (1 - x) * (1 - p).log()).sum(1)
    assert torch.allclose(hm.log_likelihood(rbm, x).value, expected, atol=1e-12)


def test_an_estimate_of_log_z_is_carried_over() -> None:
    rbm = tiny_rbm("Bernoulli", "Spin")
    x = torch.ones(3, 4).double()
    z = hm.Estimate(2.0, 0.1, 1.5, 2.8, "sandwich", ess=7.0, trusted=False, note="wide")
    estimate = hm.log_likelihood(rbm, x, log_z=z)
    free = rbm.free_energy(x)
    assert torch.allclose(estimate.value, -free - 2.0)
    assert torch.allclose(estimate.lower, -free - 2.8)  # a large Z makes a small probability
    assert torch.allclose(estimate.upper, -free - 1.5)
    assert (estimate.error, estimate.kind, estimate.ess, estimate.trusted, estimate.note) == (
        0.1, "sandwich", 7.0, False, "wide"
    )  # fmt: skip
    mean = estimate.mean()
    assert mean.value == pytest.approx((-free - 2.0).mean().item())
    assert mean.error == pytest.approx(0.1)
    assert mean.lower < mean.value < mean.upper
    assert str(estimate).startswith("(3,) values, mean ")
    assert str(estimate).endswith("not trustworthy: wide")


def test_large_machines_have_error_bars(generator: torch.Generator) -> None:
    """Pairs of units: too many states to count, but a likelihood in closed form."""
    n = 26
    rbm = hm.RBM(hm.Bernoulli(n), hm.Bernoulli(n)).double()
    with torch.no_grad():
        rbm.weight.copy_(torch.eye(n))
    x = torch.zeros(1, n).double()
    z = hm.log_z(rbm, n_chains=200, n_betas=60, n_steps=10, generator=generator)
    estimate = hm.log_likelihood(rbm, x, log_z=z).mean()
    exact = n * math.log(2 / (3 + math.e))
    assert estimate.kind == "sandwich"
    assert estimate.lower < exact < estimate.upper
    assert abs(estimate.value - exact) < 5 * estimate.error


def test_single_precision_is_close() -> None:
    rbm = tiny_rbm("Bernoulli", "Bernoulli")
    x = torch.ones(2, 4)
    double = hm.log_likelihood(rbm, x.double()).value
    single = hm.log_likelihood(rbm.float(), x).value
    assert single.dtype == torch.float64
    assert torch.allclose(single, double, atol=1e-5)


def test_no_rows_and_bad_rows() -> None:
    rbm = tiny_rbm("Bernoulli", "Bernoulli")
    assert hm.log_likelihood(rbm, torch.zeros(0, 4).double()).value.shape == (0,)
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        hm.log_likelihood(rbm, torch.full((1, 4), 2.0).double())
    bytes_, floats = torch.ones(1, 4, dtype=torch.uint8), torch.ones(1, 4).double()
    assert torch.equal(hm.log_likelihood(rbm, bytes_).value, hm.log_likelihood(rbm, floats).value)
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        hm.log_likelihood(rbm, 2 * bytes_)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (hm.Estimate(1.4042286714, 0.0, 1.4042286714, 1.4042286714, "exact"), "1.404228671 (exact)"),
        (hm.Estimate(-85.3123, 0.0432, -85.5, -85.2, "ais"), "-85.312 ± 0.043 [-85.500, -85.200] (ais)"),
        (hm.Estimate(3.0, 12.0, -33.0, 39.0, "ais"), "3.00 ± 12.00 [-33.00, 39.00] (ais)"),
        (hm.Estimate(3.0, 0.0, 3.0, 3.0, "ais"), "3.00 ± 0.00 [3.00, 3.00] (ais)"),
    ],
)
def test_estimates_in_words(estimate: hm.Estimate, text: str) -> None:
    """Two digits of the error, and never fewer than two decimals."""
    assert str(estimate) == text


def test_values_between_those_of_the_units_have_no_likelihood() -> None:
    """-F(x) - log Z of a gray value is no probability: summed over a grid it is not 1. So it is refused."""
    rbm = tiny_rbm("Bernoulli", "Bernoulli")
    gray = torch.full((3, 4), 0.5, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"`visible` must hold values of Bernoulli\(4\): 0 and 1. Got 0.5"):
        hm.log_likelihood(rbm, gray)
    assert rbm.free_energy(gray).isfinite().all()  # learning takes gray values as means
    levels = tiny_rbm("Binomial", "Bernoulli")
    with pytest.raises(ValueError, match=r"0, 1, …, 3. Got 1.9"):
        hm.log_likelihood(levels, torch.full((1, 2), 1.9, dtype=torch.float64))


def test_a_density_on_a_box_ends_there() -> None:
    model = hm.NeuralEBM(hm.networks.MLP(2, 1))
    with pytest.raises(ValueError, match=r"must lie in the box \[-1, 1\], over which Z .* Got values from 2 to 2"):
        hm.log_likelihood(model, torch.full((1, 2), 2.0))


def test_a_deep_network_is_scored_on_its_data_layer() -> None:
    dbn = hm.DBN.from_spec("dense 4, dense 2", shape=(6,))
    with pytest.raises(ValueError, match=r"scored on its layer 'visible' alone. Got \['x'\]"):
        hm.log_likelihood(dbn, {"x": torch.eye(6)})
    with pytest.raises(ValueError, match=r"must hold values of Bernoulli\(6\)"):
        hm.log_likelihood(dbn, torch.eye(6) / 2)
