"""Where learning starts: biases and widths from the data."""

from __future__ import annotations

import pytest
import torch

import harmonium as hm
from harmonium.learning.starts import spread_components
from harmonium.units import Units
from tests.learning.machines import MACHINES


@pytest.mark.parametrize("name", [name for name in MACHINES if name not in ("Boltzmann", "Convolution", "Mixed")])
def test_units_under_their_bias_have_the_mean_of_the_data(name: str, generator: torch.Generator) -> None:
    """The fit adds one sample of the law at zero field to the n rows."""
    machine = MACHINES[name]().double()
    units = machine.layer(machine.data_layer)
    field = 0.5 * torch.empty(units.shape, dtype=torch.float64).normal_(generator=generator)
    x = units.sample(field.expand(300, *units.shape), generator=generator)
    hm.initialize(machine, x)
    bias = machine.bias_field(machine.data_layer)
    prior = units.mean(torch.zeros_like(bias))
    assert torch.allclose(units.mean(bias), (x.sum(0) + prior) / 301, atol=1e-6)
    assert torch.allclose(units.mean(bias), x.mean(0), atol=0.05)


def test_gaussian_widths_are_the_spread_of_the_data(generator: torch.Generator) -> None:
    x = 3.0 + 2.5 * torch.empty(400, 2).normal_(generator=generator)
    rbm = hm.RBM(hm.Gaussian(2), hm.Bernoulli(3))
    hm.initialize(rbm, x)
    assert torch.allclose(rbm.visible.sigma, x.std(0, correction=0), rtol=1e-5)
    assert torch.allclose(rbm.visible_bias, x.mean(0), rtol=0.01)
    constant = torch.ones(10, 2)
    hm.initialize(rbm, constant)
    assert torch.allclose(rbm.visible.sigma, torch.tensor(rbm.visible.floor))


def test_columns_of_a_table(generator: torch.Generator) -> None:
    table = hm.Mixed(hm.Bernoulli(1), hm.Gaussian(1), hm.Categorical(1, 3))
    rbm = hm.RBM(table, hm.Bernoulli(2)).double()
    rows = table.sample(torch.tensor([1.0, 2.0, 0.0, 1.0, -1.0]).double().expand(500, 5), generator=generator)
    rows[:, 1] *= 3.0
    hm.initialize(rbm, rows)
    assert torch.allclose(table.mean(rbm.visible_bias), rows.mean(0), atol=0.05)
    assert table.parts[1].sigma.item() == pytest.approx(rows[:, 1].std(correction=0).item())


def test_missing_values_are_left_out() -> None:
    rbm = hm.RBM(hm.Gaussian(1), hm.Bernoulli(1)).double()
    known = torch.tensor([[1.0], [2.0], [6.0]]).double()
    hm.initialize(rbm, torch.cat([known, torch.full((5, 1), torch.nan).double()]))
    assert rbm.visible_bias.item() == pytest.approx(9 / 4)
    assert rbm.visible.sigma.item() == pytest.approx(known.std(correction=0).item())


def test_shared_biases_are_averaged_over_the_places(generator: torch.Generator) -> None:
    rbm = hm.RBM(hm.Gaussian(2, 4, 4), hm.Bernoulli(3, 3, 3), hm.Conv2d(2, 3, kernel=2)).double()
    x = torch.empty(99, 2, 4, 4, dtype=torch.float64).normal_(generator=generator)
    hm.initialize(rbm, x)
    assert torch.allclose(rbm.visible_bias.flatten(), x.mean((0, 2, 3)) * 99 / 100)


def test_units_that_never_vary_get_a_finite_bias_and_couplings_stay() -> None:
    rbm = hm.RBM(hm.Bernoulli(2), hm.Bernoulli(2))
    weight, hidden = rbm.weight.detach().clone(), rbm.hidden_bias.detach().clone()
    hm.initialize(rbm, torch.tensor([[0, 1]], dtype=torch.uint8).repeat(50, 1))
    assert bool(rbm.visible_bias.isfinite().all())
    assert rbm.visible_bias[0] < -3
    assert rbm.visible_bias[1] > 3
    assert torch.equal(rbm.weight, weight)
    assert torch.equal(rbm.hidden_bias, hidden)


def test_wrong_shape() -> None:
    with pytest.raises(ValueError, match="`visible` must have shape"):
        hm.initialize(hm.RBM(hm.Bernoulli(4), hm.Bernoulli(2)), torch.zeros(3, 5))


@pytest.mark.parametrize("hidden", [hm.Bernoulli(4), hm.Bernoulli(2, 2), hm.Categorical(2, 3)], ids=repr)
def test_a_component_of_a_spread_mixture_is_as_probable_as_none(hidden: Units, generator: torch.Generator) -> None:
    """With one unit of one layer on, summed over x: the weight of a component, whatever the shape of the layer."""
    rbm = hm.RBM(hm.Gaussian(3), hidden, generator=generator).double()
    hm.initialize(rbm, torch.empty(60, 3, dtype=torch.float64).normal_(1.0, generator=generator))
    alone = torch.eye(rbm.hidden_bias.numel(), dtype=torch.float64).reshape(-1, *rbm.hidden_bias.shape)
    none = torch.zeros_like(alone[:1])

    def spread() -> float:
        fields = rbm.field("visible", {"hidden": torch.cat([none, alone])})
        log_weight = rbm.visible.log_partition(fields).sum(-1)
        log_weight[1:] += (alone * rbm.hidden_bias).flatten(1).sum(-1)
        return (log_weight - log_weight[0]).abs().max().item()

    spread_components(rbm, 0.5, generator=generator)
    assert spread() < 1e-12
    rbm.hidden_bias.data.mul_(1.1)
    assert spread() > 1e-3


@pytest.mark.parametrize("hidden", [hm.Gaussian(4), hm.NReLU(4), hm.Poisson(4)], ids=repr)
def test_unbounded_hidden_units_do_not_start_as_a_mixture(hidden: Units, generator: torch.Generator) -> None:
    """Components that lie apart are far along unbounded units: `WᵀW/σ²` is too large for a law."""
    x = torch.empty(60, 3).normal_(generator=generator)
    rbm = hm.RBM(hm.Gaussian(3), hidden, generator=generator)
    hm.fit(rbm, x, epochs=5, generator=generator)
    assert bool(hm.sample(rbm, 20, generator=generator).isfinite().all())


def test_gaussian_pixels_under_a_convolution_learn(generator: torch.Generator) -> None:
    x = torch.empty(20, 1, 6, 6).normal_(generator=generator)
    rbm = hm.RBM(hm.Gaussian(1, 6, 6), hm.Bernoulli(2, 4, 4), hm.Conv2d(1, 2, kernel=3), generator=generator)
    assert len(hm.fit(rbm, x, epochs=2, generator=generator)) == 2
    with pytest.raises(ValueError, match="is for a Dense coupling"):
        spread_components(rbm, 0.5, generator=generator)
