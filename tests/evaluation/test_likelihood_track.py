"""The running log-likelihood against exact values along the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

import harmonium as hm
from harmonium.learning import Training
from tests.learning.machines import small_bars


class Exact(hm.Callback):
    """Notes the exact log Z at the end of each epoch."""

    def __init__(self) -> None:
        self.log_z: list[float] = []

    def on_epoch(self, training: Training, record: dict[str, Any]) -> None:
        self.log_z.append(hm.exact_log_z(training.model).value)


class Blind(hm.LikelihoodTrack):
    """Never notices that it is lost."""

    def _lost(self, model: hm.BoltzmannMachine, negative: torch.Tensor) -> bool:
        return False


def tracked(track: hm.LikelihoodTrack, generator: torch.Generator) -> tuple[hm.RBM, hm.History, list[float]]:
    x = small_bars().double()
    rbm = hm.RBM(hm.Bernoulli(9), hm.Bernoulli(8), generator=generator).double()
    hm.initialize(rbm, x)
    exact = Exact()
    history = hm.fit(rbm, x.repeat(4, 1), hm.PCD(n_chains=32), optimizer=torch.optim.SGD(rbm.parameters(), 0.2),
                     epochs=12, batch_size=8, monitors=[track], callbacks=[exact], validation=x,
                     generator=generator)  # fmt: skip
    return rbm, history, exact.log_z


def test_log_z_is_followed_within_its_error(generator: torch.Generator) -> None:
    rbm, history, exact = tracked(hm.LikelihoodTrack(n_particles=512, every=4), generator)
    assert max(exact) - min(exact) > 0.05  # something to follow
    for value, error, truth in zip(history["log_z"], history["log_z_error"], exact, strict=True):
        assert abs(value - truth) < 5 * error + 0.01
        assert error < 0.1
    x = small_bars().double()
    expected = -rbm.free_energy(x).mean().item() - history.last["log_z"]
    assert history.last["validation_log_likelihood"] == pytest.approx(expected)


def test_particles_that_were_left_behind_are_annealed_anew(generator: torch.Generator) -> None:
    """Particles far from where the chains are, with a wrong log Z: the restart is right, the control stays wrong."""
    errors = {}
    for kind in (Blind, hm.LikelihoodTrack):
        rbm = hm.RBM(hm.Bernoulli(9), hm.Bernoulli(8), generator=generator).double()
        with torch.no_grad():
            rbm.visible_bias.fill_(-3.0)
        track = kind(n_particles=256, every=1)
        training = Training(rbm, small_bars().double(), hm.CD(), optimizer=torch.optim.SGD(rbm.parameters(), 0.0),
                            epochs=1, monitors=[track], generator=generator)  # fmt: skip
        training.run()
        training.phases = replace(training.phases, negative={"visible": hm.sample(rbm, 64, generator=generator)})
        before = track.restarts
        track.state["visible"] = torch.ones_like(track.state["visible"])
        track.log_z += 50.0
        errors[kind] = abs(track(training)["log_z"] - hm.exact_log_z(rbm).value)
        assert track.restarts - before == (kind is not Blind)
    assert errors[hm.LikelihoodTrack] < 0.1
    assert errors[Blind] > 40


def test_training_is_not_disturbed(generator: torch.Generator) -> None:
    state = generator.get_state()
    rbm, _, _ = tracked(hm.LikelihoodTrack(n_particles=16), generator)
    generator.set_state(state)
    other, _, _ = tracked(hm.LikelihoodTrack(n_particles=64, every=1, seed=5), generator)
    assert torch.equal(rbm.weight, other.weight)


def test_other_models_are_left_alone() -> None:
    model = nn.Linear(2, 1)

    def objective(model: nn.Module, x: torch.Tensor, *, generator: torch.Generator | None) -> torch.Tensor:
        return model(x).square().mean()

    history = hm.fit(model, torch.ones(4, 2), objective, optimizer=torch.optim.SGD(model.parameters(), 0.1), epochs=1,
                     monitors=[hm.LikelihoodTrack()])  # fmt: skip
    assert "log_z" not in history.last
    assert hm.LikelihoodTrack().state_dict() == {}
