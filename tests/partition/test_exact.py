"""Exact log Z against sums written in another order, closed forms and a published value."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

import harmonium as hm
from harmonium.testing import ALL_MACHINES, TINY_UNITS, ExactLaw, scatter, tiny_rbm

FINITE = ("Bernoulli", "Spin", "Categorical", "Binomial", "Multinary")
COUNTED = ("NReLU", "Poisson")
PUBLISHED_LOG_Z = 1.40422867085


def published_rbm() -> hm.RBM:
    """The Gaussian-Bernoulli RBM whose log Z is published."""
    rbm = hm.RBM(hm.Gaussian(2), hm.Bernoulli(4)).double()
    values = {
        "couplings.0.weight": [
            [-2.13559806, -0.71220501, 0.64841691, 2.17880554],
            [0.75840129, -2.13979672, 2.09910978, -0.64721076],
        ],
        "couplings.2.bias": [-7.87792514, -7.60603139, -7.73935758, -7.722771],
        "units.visible.log_sigma": [math.log(0.74241256), math.log(0.73101419)],
    }
    tensors = {name: torch.tensor(value, dtype=torch.float64) for name, value in values.items()}
    rbm.load_state_dict(rbm.state_dict() | tensors)
    return rbm


def transposed(rbm: hm.RBM) -> hm.RBM:
    """The same machine with its sides exchanged."""
    other = hm.RBM(rbm.hidden, rbm.visible).double()
    with torch.no_grad():
        other.weight.copy_(rbm.weight.t())
        other.visible_bias.copy_(rbm.hidden_bias)
        other.hidden_bias.copy_(rbm.visible_bias)
    return other


def all_states(units: hm.units.Units) -> Tensor:
    n = units.n_configurations()
    assert n is not None
    return units.configurations(torch.arange(n))


@torch.no_grad()
def summed_over(rbm: hm.RBM, layer: str, states: Tensor) -> float:
    """log Σ e^{-F} over the states of one layer, the other summed out in closed form."""
    return (-rbm.energy({layer: states})).logsumexp(0).item()


@pytest.mark.parametrize(("visible", "hidden"), list(itertools.product(FINITE, FINITE)))
def test_both_orders_of_enumeration_agree(visible: str, hidden: str, generator: torch.Generator) -> None:
    rbm = scatter(tiny_rbm(visible, hidden), scale=1.5, generator=generator)
    orders = [summed_over(rbm, layer, all_states(rbm.layer(layer))) for layer in ("visible", "hidden")]
    values = [hm.exact_log_z(rbm).value, hm.exact_log_z(transposed(rbm)).value]
    assert max(orders + values) - min(orders + values) < 1e-9


@pytest.mark.parametrize(("infinite", "finite"), list(itertools.product(COUNTED, FINITE)))
def test_a_side_of_counts_is_summed_in_closed_form(infinite: str, finite: str, generator: torch.Generator) -> None:
    rbm = scatter(tiny_rbm(infinite, finite), generator=generator)
    count = torch.arange(80, dtype=torch.float64)
    grid = torch.cartesian_prod(count, count)  # the mass beyond 80 is below 1e-12
    expected = summed_over(rbm, "visible", grid)
    assert hm.exact_log_z(rbm).value == pytest.approx(expected, abs=1e-9)
    assert hm.exact_log_z(transposed(rbm)).value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("finite", FINITE)
def test_a_gaussian_side_is_integrated_in_closed_form(finite: str, generator: torch.Generator) -> None:
    rbm = scatter(tiny_rbm("Gaussian", finite), generator=generator)
    step = 0.1  # the trapezoidal rule converges exponentially for Gaussians
    axis = torch.arange(-25, 25, step, dtype=torch.float64)
    expected = summed_over(rbm, "visible", torch.cartesian_prod(axis, axis)) + 2 * math.log(step)
    assert hm.exact_log_z(rbm).value == pytest.approx(expected, abs=1e-9)
    assert hm.exact_log_z(transposed(rbm)).value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ALL_MACHINES)
def test_every_small_machine_agrees_with_its_table(name: str) -> None:
    machine = ALL_MACHINES[name]()
    estimate = hm.exact_log_z(machine)
    assert estimate.value == pytest.approx(ExactLaw(machine).log_z, abs=1e-9)
    assert (estimate.error, estimate.lower, estimate.upper, estimate.kind) == (
        0.0,
        estimate.value,
        estimate.value,
        "exact",
    )


def test_published_gaussian_rbm() -> None:
    assert hm.exact_log_z(published_rbm()).value == pytest.approx(PUBLISHED_LOG_Z, abs=1e-8)
    assert hm.exact_log_z(published_rbm()).value == pytest.approx(1.4042286714, abs=1e-10)
    assert hm.exact_log_z(published_rbm()).value == pytest.approx(mixture_log_z(published_rbm()), abs=1e-12)


def mixture_log_z(rbm: hm.RBM) -> float:
    """Σ_h e^{cᵀh} ∫ e^{-x²/2σ² + xᵀ(b + Wh)/σ²} dx, one Gaussian integral a hidden state, in plain Python."""
    W, c, b = rbm.weight.tolist(), rbm.hidden_bias.tolist(), rbm.visible_bias.tolist()
    sigma = rbm.visible.sigma.tolist()
    total = 0.0
    for h in itertools.product((0, 1), repeat=len(c)):
        term = math.exp(sum(cj * hj for cj, hj in zip(c, h, strict=True)))
        for i, s in enumerate(sigma):
            mean = b[i] + sum(w * hj for w, hj in zip(W[i], h, strict=True))
            term *= math.sqrt(2 * math.pi) * s * math.exp(mean**2 / (2 * s**2))
        total += term
    return math.log(total)


def test_one_layer_tied_to_itself(generator: torch.Generator) -> None:
    """A fully connected pair of spins: Z = 2e^J cosh(b₁ + b₂) + 2e^{-J} cosh(b₁ - b₂)."""
    machine = hm.BoltzmannMachine({"x": hm.Spin(2)}, [(("x", "x"), hm.Symmetric(2)), (("x",), hm.Bias(2))])
    scatter(machine, scale=1.0, generator=generator)
    J = machine.couplings[0].matrix()[0, 1].item()
    b1, b2 = machine.couplings[1].bias.tolist()
    z = 2 * math.exp(J) * math.cosh(b1 + b2) + 2 * math.exp(-J) * math.cosh(b1 - b2)
    assert hm.exact_log_z(machine).value == pytest.approx(math.log(z), abs=1e-12)


def test_ising_ring_has_the_transfer_matrix_value() -> None:
    """A ring of n spins: Z = λ₊ⁿ + λ₋ⁿ with λ = 2 cosh J, 2 sinh J."""
    n, J = 9, 0.7
    machine = hm.BoltzmannMachine({"x": hm.Spin(n)}, [(("x", "x"), hm.Symmetric(n))]).double()
    with torch.no_grad():
        for i in range(n):
            machine.couplings[0].weight[i, (i + 1) % n] = 2 * J  # only the symmetric part counts
    z = (2 * math.cosh(J)) ** n + (2 * math.sinh(J)) ** n
    assert hm.exact_log_z(machine).value == pytest.approx(math.log(z), abs=1e-12)


@pytest.mark.parametrize("kind", TINY_UNITS)
def test_a_lone_layer_of_units(kind: str) -> None:
    """No couplings but the biases: log Z = Σ A(b)."""
    units = TINY_UNITS[kind]()
    machine = scatter(hm.BoltzmannMachine({"x": units}, [(("x",), hm.Bias(units.shape))]))
    expected = units.log_partition(machine.couplings[0].bias).sum().item()
    assert hm.exact_log_z(machine).value == pytest.approx(expected, abs=1e-12)


def test_three_layers_enumerate_the_cheapest_block() -> None:
    """The middle layer of 3 spins decides the two outer ones of 20: counted over 2³ states, not over 2⁴⁰."""
    units = {"visible": hm.Bernoulli(20), "middle": hm.Spin(3), "top": hm.Bernoulli(20)}
    terms = [(("visible", "middle"), hm.Dense(20, 3)), (("middle", "top"), hm.Dense(3, 20))]
    machine = scatter(hm.BoltzmannMachine(units, terms))
    total = []
    for middle in itertools.product((-1.0, 1.0), repeat=3):
        m = torch.tensor(middle, dtype=torch.float64)
        fields = torch.cat([terms[0][1].weight @ m, m @ terms[1][1].weight])
        total.append(fields.exp().log1p().sum())
    expected = torch.stack(total).logsumexp(0).item()
    assert hm.exact_log_z(machine).value == pytest.approx(expected, abs=1e-9)


def test_the_machine_is_left_alone() -> None:
    rbm = hm.RBM(hm.Bernoulli(5), hm.Bernoulli(3))
    before = {name: value.clone() for name, value in rbm.state_dict().items()}
    hm.exact_log_z(rbm)
    assert all(value.dtype == torch.float32 for value in rbm.state_dict().values())
    assert all(torch.equal(value, before[name]) for name, value in rbm.state_dict().items())


def test_float32_is_summed_in_float64() -> None:
    rbm = scatter(hm.RBM(hm.Bernoulli(14), hm.Bernoulli(14)), scale=2.0).float()
    assert hm.exact_log_z(rbm).value == pytest.approx(hm.exact_log_z(rbm.double()).value, abs=1e-9)


def test_too_many_states() -> None:
    rbm = hm.RBM(hm.Bernoulli(784), hm.Bernoulli(500))
    with pytest.raises(ValueError, match=r"would count about 2\^500 states of layers \['hidden'\]; the limit is 2\^25"):
        hm.exact_log_z(rbm)
    with pytest.raises(ValueError, match=r"about 2\^26 states.*Use harmonium.ais or harmonium.log_z"):
        hm.exact_log_z(hm.RBM(hm.Bernoulli(26), hm.Bernoulli(30)))
    with pytest.raises(ValueError, match="infinitely many states"):
        hm.exact_log_z(hm.RBM(hm.Gaussian(2), hm.Poisson(2)))


@pytest.mark.parametrize("estimator", [hm.exact_log_z, hm.ais, hm.partition.reverse_ais, hm.log_z])
def test_smooth_units_have_no_log_z(estimator: object) -> None:
    rbm = hm.RBM(hm.Multinary(3, levels=3), hm.Bernoulli(2))
    with pytest.raises(ValueError, match="needs a base measure for every layer. Layer 'visible' .* exact=True"):
        estimator(rbm)  # type: ignore[operator]
    assert hm.exact_log_z(hm.RBM(hm.Multinary(3, levels=3, exact=True), hm.Bernoulli(2))).kind == "exact"


def test_parameters_that_are_not_finite() -> None:
    rbm = hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2))
    with torch.no_grad():
        rbm.weight[0, 0] = torch.nan
    with pytest.raises(ValueError, match="log Z is nan"):
        hm.exact_log_z(rbm)


def test_huge_weights_do_not_overflow() -> None:
    rbm = scatter(hm.RBM(hm.Bernoulli(5), hm.Bernoulli(4)), scale=1e4)
    orders = [summed_over(rbm, layer, all_states(rbm.layer(layer))) for layer in ("visible", "hidden")]
    assert hm.exact_log_z(rbm).value == pytest.approx(orders[0], rel=1e-12) == pytest.approx(orders[1], rel=1e-12)
