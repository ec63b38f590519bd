"""Metrics against their definitions."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.utils.data import DataLoader

import harmonium as hm
from harmonium.learning import History, Training
from harmonium.learning.epoch_rows import EpochRows
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
    x, negative = (phase["visible"] for phase in (training.seen.positive, training.phases.negative))
    assert len(x) == 12  # all rows of the epoch
    record = training.history.last
    free = rbm.free_energy(x).mean().item()
    assert record["free_energy"] == pytest.approx(free)
    assert record["contrast"] == pytest.approx(free - rbm.free_energy(negative).mean().item())
    assert record["validation_free_energy"] == pytest.approx(rbm.free_energy(validation).mean().item())
    assert record["free_energy_gap"] == pytest.approx(free - rbm.free_energy(validation).mean().item())
    rebuilt = rbm.mean("visible", rbm.infer(x))
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


def test_an_epoch_is_measured_and_not_its_last_batch(generator: torch.Generator) -> None:
    """Rows in order, the last batch of all ones: its reconstruction and its dead units are not those of the epoch."""
    x = torch.zeros(40, 6, dtype=torch.float64)
    x[:36] = (torch.arange(36)[:, None] % 6 == torch.arange(6)).double()
    x[36:] = 1.0
    rbm = hm.RBM(hm.Bernoulli(6), hm.Bernoulli(6)).double()
    with torch.no_grad():
        rbm.weight.copy_(12 * torch.eye(6).double())
        rbm.hidden_bias.fill_(-6.0)  # unit j fires where x_j is on
    training = Training(rbm, DataLoader(x, batch_size=4), hm.CD(), optimizer=torch.optim.SGD(rbm.parameters(), 0.0),
                        epochs=1, monitors=[Energies(), HiddenUnits()], generator=generator)  # fmt: skip
    training.run()
    record = training.history.last
    assert torch.equal(training.seen.positive["visible"], x)
    assert record["free_energy"] == pytest.approx(rbm.free_energy(x).mean().item())
    assert record["n_rows"] == 40 and record["saturated"] == 0
    last = rbm.infer(x[36:])["hidden"]
    assert bool((last > 0.99).all())  # the last batch alone would call every unit saturated
    negative = training.seen.negative["visible"]  # of the chains that started at the same rows
    assert record["contrast"] == pytest.approx((rbm.free_energy(x) - rbm.free_energy(negative)).mean().item())


@pytest.mark.parametrize(
    ("n", "batch", "fewest", "most"),
    [(10_000, 128, 128, 158), (60_000, 64, 250, 256), (300, 7, 120, 128), (50, 8, 50, 50)],
)
def test_rows_come_from_all_of_an_epoch(n: int, batch: int, fewest: int, most: int) -> None:
    rows = EpochRows()
    for index in torch.arange(n).split(batch):
        rows.add({"x": index[:, None].float()}, {}, len(index), n)
    taken = rows.joined()[0]["x"][:, 0]
    assert fewest <= len(taken) <= most and len(taken.unique()) == len(taken)
    gaps = torch.cat([taken[:1], taken.diff(), n - taken[-1:]])
    assert gaps.max() <= max(2 * batch, 8 * n / len(taken) + batch)  # no part of the epoch is left out
    again = EpochRows()
    again.load_state_dict(rows.state_dict())
    assert torch.equal(again.joined()[0]["x"][:, 0], taken) and again.n_seen == n
    large = EpochRows()
    large.add({"x": torch.zeros(batch, 2**20)}, {}, batch, batch)
    assert large.n_taken == 2  # of four megabytes each


def test_gray_values_have_no_pseudo_likelihood(generator: torch.Generator) -> None:
    rbm = hm.RBM(hm.Bernoulli(6), hm.Bernoulli(3))
    history = hm.fit(rbm, torch.rand(20, 6, generator=generator), epochs=2, generator=generator)
    assert history["between_values"] == [1.0, 1.0] and not history["pseudo_likelihood"]
    binary = hm.fit(rbm, torch.eye(6), epochs=1, generator=generator)
    assert not binary["between_values"] and binary["pseudo_likelihood"]
