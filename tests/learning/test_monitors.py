"""Metrics against their definitions."""

from __future__ import annotations

import itertools

import pytest
import torch

import harmonium as hm
from harmonium.learning import History, Training
from harmonium.learning.monitors import Energies, HealthWarning, HiddenUnits, Mixing, Monitor
from harmonium.learning.monitors.energies import _pseudo_likelihood
from harmonium.samplers import split_r_hat
from harmonium.testing import scatter
from tests.learning.machines import draw_data, make


def one_epoch(machine: hm.BoltzmannMachine, generator: torch.Generator, monitors: list[Monitor], **options):  # type: ignore[no-untyped-def]
    x = draw_data(machine, 12, generator)
    training = Training(machine, x, hm.PCD(n_chains=8), optimizer=torch.optim.SGD(machine.parameters(), 0.01), epochs=1,
                        monitors=monitors, generator=generator, **options)  # fmt: skip
    training.run()
    return training


def test_energies(generator: torch.Generator) -> None:
    rbm = make("Bernoulli")
    validation = draw_data(rbm, 7, generator)
    training = one_epoch(rbm, generator, [Energies()], validation=validation)
    x, negative = (phase["visible"] for phase in (training.phases.positive, training.phases.negative))
    record = training.history.last
    free = rbm.free_energy(x).mean().item()
    assert record["free_energy"] == pytest.approx(free)
    assert record["contrast"] == pytest.approx(free - rbm.free_energy(negative).mean().item())
    assert record["validation_free_energy"] == pytest.approx(rbm.free_energy(validation).mean().item())
    assert record["free_energy_gap"] == pytest.approx(free - rbm.free_energy(validation).mean().item())
    rebuilt = rbm.mean("visible", training.phases.positive)
    assert record["reconstruction"] == pytest.approx((rebuilt - x).square().mean().item())
    assert record["pseudo_likelihood"] < 0


@pytest.mark.parametrize("units", [hm.Bernoulli(3), hm.Spin(3)], ids=repr)
def test_pseudo_likelihood_walks_over_the_units(units: hm.units.Units) -> None:
    """Averaged over as many epochs as units, on all states: the definition Σ_i log p(x_i | rest) by brute force."""
    rbm = scatter(hm.RBM(units, hm.Bernoulli(2)))
    low, high = units.bounds()
    x = torch.tensor(list(itertools.product((low, high), repeat=3)), dtype=torch.float64)
    free = rbm.free_energy(x)
    expected = []
    for i in range(3):
        flipped = x.clone()
        flipped[:, i] = low + high - flipped[:, i]
        expected.append(((-free).exp() / ((-free).exp() + (-rbm.free_energy(flipped)).exp())).log())
    estimates = [_pseudo_likelihood(rbm, x, free, epoch) for epoch in range(3)]
    assert torch.stack(estimates).mean().item() == pytest.approx(torch.stack(expected).sum(0).mean().item())


def test_hidden_units_are_counted(generator: torch.Generator) -> None:
    rbm = make("Bernoulli")
    with torch.no_grad():
        rbm.hidden_bias.copy_(torch.tensor([-40.0, 0.0, 40.0]))
    with pytest.warns(HealthWarning, match="1 of 3 hidden units"):
        training = one_epoch(rbm, generator, [HiddenUnits()])
    record = training.history.last
    assert (record["n_hidden"], record["dead"], record["saturated"]) == (3, 1, 1)
    assert 0 < record["activity"] < 1


def test_unbounded_hidden_units_are_not_counted(generator: torch.Generator) -> None:
    assert "dead" not in one_epoch(make("Gaussian hidden"), generator, [HiddenUnits()]).history.last
    assert "dead" not in one_epoch(make("Boltzmann"), generator, [HiddenUnits(), Energies()]).history.last


def test_mixing_is_the_r_hat_of_the_trace(generator: torch.Generator) -> None:
    rbm = make("Bernoulli")
    mixing = Mixing(n_draws=30)
    x = draw_data(rbm, 50, generator)
    history = hm.fit(rbm, x, hm.PCD(n_chains=6), optimizer=torch.optim.SGD(rbm.parameters(), 0.01), epochs=1,
                     batch_size=1, monitors=[mixing], generator=generator)  # fmt: skip
    trace = torch.stack(mixing.trace, dim=1)
    assert trace.shape == (6, 30)
    assert history.last["r_hat"] == pytest.approx(split_r_hat(trace).item())
    assert history.last["n_draws"] == 30
    again = Mixing()
    again.load_state_dict(mixing.state_dict())
    assert torch.equal(torch.stack(again.trace), torch.stack(mixing.trace))
    cd = Mixing()
    hm.fit(rbm, x, hm.CD(), optimizer=torch.optim.SGD(rbm.parameters(), 0.01), epochs=1, monitors=[cd],
           generator=generator)  # fmt: skip
    assert cd.trace == []


def test_history() -> None:
    history = History([{"epoch": 1, "a": 1.0}, {"epoch": 2}, {"epoch": 3, "a": 3.0}])
    assert history["a"] == [1.0, 3.0]
    assert len(history) == 3
    assert history.last == {"epoch": 3, "a": 3.0}
    assert History().last == {}
