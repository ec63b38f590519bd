"""Where learning starts: biases and widths from the data."""

from __future__ import annotations

import pytest
import torch

import harmonium as hm
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
