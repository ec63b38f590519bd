"""An estimate of log Z that is wrong says so: guaranteed bounds, and populations that start apart."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

import harmonium as hm
import harmonium.testing
from harmonium.partition import modes, sandwich
from harmonium.partition.ais import MARKOV, anneal, from_weights, reversed_estimate, weight_error
from harmonium.partition.base import path_of
from harmonium.partition.modes import Modes, mean_field_modes
from harmonium.partition.states_bound import finite_layers, states_bound
from harmonium.testing import ALL_MACHINES, ExactLaw, tiny_rbm


def ferromagnet(n: int, weight: float, bias: float) -> tuple[hm.RBM, float]:
    """Return an RBM with one weight and one bias, and log Z by counting: `Σ_kl C(n,k) C(n,l) e^{b(k+l) + wkl}`."""
    rbm = hm.RBM(hm.Bernoulli(n), hm.Bernoulli(n))
    with torch.no_grad():
        rbm.weight.fill_(weight)
        rbm.visible_bias.fill_(bias)
        rbm.hidden_bias.fill_(bias)
    k = torch.arange(n + 1, dtype=torch.float64)
    choose = torch.tensor([math.log(math.comb(n, i)) for i in range(n + 1)], dtype=torch.float64)
    terms = choose[:, None] + choose + bias * (k[:, None] + k) + weight * k[:, None] * k
    return rbm, terms.flatten().logsumexp(0).item()


@pytest.mark.parametrize("name", ALL_MACHINES)
def test_guaranteed_bounds_hold(name: str, generator: torch.Generator) -> None:
    machine = ALL_MACHINES[name]()
    exact = hm.exact_log_z(machine).value
    found = mean_field_modes(machine, generator=generator)
    bound, tops = found.bound, found.states
    assert bound <= exact + 1e-9
    layers = finite_layers(machine)
    assert layers and states_bound(machine, {layer: tops[layer] for layer in layers}) <= exact + 1e-9
    law = ExactLaw(machine)
    if set(layers) <= set(law.layers):  # all states: nothing is missing
        everything = {layer: law.states[layer] for layer in layers}
        assert states_bound(machine, everything) == pytest.approx(exact, abs=1e-9)


def test_mean_field_is_exact_without_couplings_between_layers(generator: torch.Generator) -> None:
    rbm = tiny_rbm("Spin", "Bernoulli")
    with torch.no_grad():
        rbm.weight.zero_()
    bound = mean_field_modes(rbm, generator=generator).bound
    assert bound == pytest.approx(hm.exact_log_z(rbm).value, abs=1e-9)


def test_states_of_a_density_cannot_be_added_up() -> None:
    rbm = hm.RBM(hm.Gaussian(2), hm.Bernoulli(3))
    assert finite_layers(rbm) == ("hidden",)
    with pytest.raises(ValueError, match="'visible' have a density"):
        states_bound(rbm, {"visible": torch.zeros(1, 2)})


@pytest.mark.parametrize(("n", "weight", "bias"), [(40, 0.25, -4.9), (30, 0.5, -7.4)])
@pytest.mark.filterwarnings("ignore:log Z is not trustworthy")
def test_a_mode_that_annealing_misses_is_annealed_on_its_own(
    n: int, weight: float, bias: float, generator: torch.Generator
) -> None:
    """A first-order transition: almost all of Z is at all ones, where no chain from the biases ever goes."""
    rbm, exact = ferromagnet(n, weight, bias)
    path = path_of(rbm)
    weights, _ = anneal(path, torch.linspace(0, 1, 300, dtype=torch.float64), 64, generator=generator)
    blind = from_weights(weights, path.log_z0(), "ais")
    assert blind.trusted and blind.upper < exact - 5  # the control: weights alone are sure of themselves, and wrong
    told = hm.ais(rbm, n_chains=64, n_betas=300, generator=generator)
    assert told.value < exact - 5 and not told.trusted and "mean field" in told.note
    assert told.at_least <= exact + 1e-4 and told.upper == math.inf
    found = hm.log_z(rbm, method="sandwich", n_chains=64, n_betas=300, n_steps=50, generator=generator)
    assert found.at_least <= exact + 1e-4
    assert found.lower - 1e-4 <= exact <= found.upper + 1e-4
    assert found.trusted and abs(found.value - exact) < 1e-3
    ones = hm.log_likelihood(rbm, torch.ones(1, n), log_z=found)
    assert ones.at_most.item() <= 1e-4  # a probability is at most 1


def test_a_machine_with_one_mode_is_trusted(generator: torch.Generator) -> None:
    rbm = hm.testing.scatter(hm.RBM(hm.Bernoulli(12), hm.Bernoulli(10)), scale=0.3, generator=generator).float()
    found = hm.log_z(rbm, method="sandwich", n_chains=128, n_betas=300, n_steps=50, generator=generator)
    exact = hm.exact_log_z(rbm).value
    annealed = hm.ais(rbm, n_chains=128, n_betas=300, generator=generator)
    for one in (found, annealed):
        assert one.trusted and one.at_least <= exact + 1e-4
    assert found.lower - 1e-4 <= exact <= found.upper + 1e-4


def test_weights_that_rest_on_one_chain_have_no_error() -> None:
    weights = torch.tensor([1000.0, *[0.0] * 99], dtype=torch.float64)
    up = from_weights(weights, 0.0, "ais")
    assert not up.trusted and up.error == math.inf and "1.0 of 100 chains" in up.note
    assert (up.lower, up.upper) == (up.value - MARKOV, math.inf)
    down = reversed_estimate(weights, 0.0)
    assert not down.trusted and (down.lower, down.upper) == (-math.inf, down.value + MARKOV)
    even = from_weights(torch.linspace(0, 1, 100, dtype=torch.float64), 0.0, "ais")
    assert even.trusted and even.error < 0.1


def test_the_jackknife_error_has_no_cap() -> None:
    """Without the one weight that is nearly all, log mean w falls by 1000 nats, not by the 26 of a clamp."""
    weights = torch.tensor([1000.0, *[0.0] * 99], dtype=torch.float64)
    assert weight_error(weights) == pytest.approx(math.sqrt(99 / 100 * 99 / 100) * (1000 - math.log(99)), rel=0.02)


def wells(hidden: hm.units.Units, n: int, strength: float, generator: torch.Generator) -> hm.RBM:
    """Return an RBM of n visible units in which each hidden unit, or class, opens a narrow well at a corner of its own.

    Each is as heavy as all the rest, and no chain from the biases finds one.
    """
    rbm = hm.RBM(hm.Bernoulli(n), hidden)
    with torch.no_grad():
        rbm.weight.copy_(strength * (torch.randint(0, 2, rbm.weight.shape, generator=generator) * 2.0 - 1))
        if isinstance(hidden, hm.Categorical):
            rbm.weight[:, 0] = 0.0  # a class that leaves all open
        rbm.visible_bias.zero_()
        open_bits = n * math.log(2.0)
        rbm.hidden_bias.copy_((open_bits - torch.nn.functional.softplus(rbm.weight).sum(0)).view_as(rbm.hidden_bias))
    return rbm


@pytest.mark.parametrize("hidden", [hm.Categorical(1, 6), hm.Categorical(1, 40), hm.Bernoulli(11)], ids=str)
@pytest.mark.filterwarnings("ignore:log Z is not trustworthy")
def test_narrow_wells_that_one_layer_opens_are_found(
    hidden: hm.units.Units, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Layers that are gone through as a whole, and one that is gone through unit by unit (2,048 configurations)."""
    rbm = wells(hidden, 60, 5.0, generator)
    exact, n_wells = hm.exact_log_z(rbm).value, hidden.shape[-1] - isinstance(hidden, hm.Categorical)
    assert exact == pytest.approx(60 * math.log(2.0) + math.log(n_wells + 1.0), abs=0.1)
    assert len(mean_field_modes(rbm, generator=generator)) > n_wells
    found = hm.log_z(rbm, method="sandwich", n_chains=64, n_betas=200, n_steps=50, generator=generator)
    if found.trusted:  # those of a mixture are known for certain, however many: all its classes are gone through
        assert found.lower <= exact <= found.upper
    else:
        assert n_wells > 8 and "modes that the annealing does not reach" in found.note
    told = hm.ais(rbm, n_chains=64, n_betas=200, generator=generator)
    assert told.value < exact - 1.0 and not told.trusted and "mean field" in told.note
    monkeypatch.setattr(modes, "layer_starts", lambda machine: [])  # the control: random starts miss some of many
    assert n_wells <= 8 or len(mean_field_modes(rbm, generator=generator)) < n_wells


def test_the_interval_has_room_for_a_mode_of_which_few_chains_know() -> None:
    """Two modes of weights 1 - p and p: of 512 chains none, a few, or many (the control) are in the second."""
    rbm = hm.RBM(hm.Spin(30), hm.Spin(1))
    with torch.no_grad():
        rbm.weight.fill_(1.0)
        rbm.visible_bias.zero_()
        rbm.hidden_bias.fill_(2.0)
    exact = hm.exact_log_z(rbm).value
    found = mean_field_modes(rbm, generator=torch.Generator().manual_seed(0))
    assert len(found) == 2
    heavy = found.states["visible"][:1].expand(512, -1)

    def room(n_light: int, modes: Modes) -> float:
        look = sandwich._Look(modes, None, None, None, torch.tensor([], dtype=torch.int64), 0, 0.0)  # type: ignore[arg-type]
        inner = torch.cat([-heavy[:n_light], heavy[n_light:]])
        return sandwich._overlooked(look, {"visible": inner}, exact)

    p = 1 / (1 + math.exp(4.0))
    assert room(0, found) == pytest.approx(MARKOV / 512) and room(0, found) < 3 * p
    assert room(5, found) == pytest.approx((MARKOV + 5) / 512)
    assert room(8, found) == 0.0
    light = dataclasses.replace(found, bounds=found.bounds - torch.tensor([0.0, 10.0], dtype=torch.float64))
    assert room(0, light) == pytest.approx(3 * p * math.exp(-10.0), rel=0.05)
