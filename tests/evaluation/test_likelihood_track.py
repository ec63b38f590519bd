"""The running log-likelihood against exact values along the way."""

from __future__ import annotations

import copy
import math
import statistics
from typing import Any

import pytest
import torch
from torch import nn

import harmonium as hm
from harmonium.evaluation import likelihood_track
from harmonium.evaluation.likelihood_track import LikelihoodTrack
from harmonium.learning import Training
from harmonium.learning.monitors import Energies
from harmonium.learning.objectives import Objective
from tests.learning.machines import small_bars


class Exact(hm.learning.Callback):
    """Notes the exact log Z at the end of each epoch, of the average of the parameters where there is one."""

    def __init__(self) -> None:
        self.log_z: list[float] = []

    def on_epoch(self, training: Training, record: dict[str, Any]) -> None:
        model = copy.deepcopy(training.model)
        for transform in training.transforms:
            with torch.no_grad():
                for name, parameter in model.named_parameters():
                    parameter.copy_(transform.average[name])
        self.log_z.append(hm.exact_log_z(model).value)


def tracked(
    track: LikelihoodTrack,
    generator: torch.Generator,
    transforms: tuple[hm.ParameterAverage, ...] = (),
) -> tuple[hm.RBM, hm.learning.History, list[float]]:
    x = small_bars().double()
    rbm = hm.RBM(hm.Bernoulli(9), hm.Bernoulli(8), generator=generator).double()
    hm.initialize(rbm, x)
    exact = Exact()
    history = hm.fit(rbm, x.repeat(4, 1), hm.PCD(n_chains=32), optimizer=torch.optim.SGD(rbm.parameters(), 0.2),
                     epochs=12, batch_size=8, transforms=transforms, monitors=[track], callbacks=[exact],
                     validation=x, generator=generator)  # fmt: skip
    return rbm, history, exact.log_z


@pytest.mark.parametrize("decay", [None, 0.9])
def test_log_z_is_followed_within_its_error(decay: float | None, generator: torch.Generator) -> None:
    average = () if decay is None else (hm.ParameterAverage(decay),)
    rbm, history, exact = tracked(LikelihoodTrack(n_particles=512), generator, average)
    assert max(exact) - min(exact) > 0.05  # something to follow
    for value, error, truth in zip(history["log_z"], history["log_z_error"], exact, strict=True):
        assert abs(value - truth) < 5 * error + 0.01
        assert error < 0.1
    if decay is None:
        expected = -rbm.free_energy(small_bars().double()).mean().item() - history.last["log_z"]
        assert history.last["validation_log_likelihood"] == pytest.approx(expected)


def test_a_jump_that_no_path_can_follow_shows_in_the_error(generator: torch.Generator) -> None:
    """From independent units to two far modes in one epoch: the error covers the truth, and is not small.

    The control has a thirtieth of the couplings, which a path follows to a few hundredths.
    """
    errors = {}
    for strength in (3.0, 0.1):
        rbm = hm.RBM(hm.Spin(24), hm.Spin(8), generator=generator).double()
        track = LikelihoodTrack(n_particles=100)
        training = Training(rbm, torch.ones(8, 24).double(), hm.CD(), epochs=1, monitors=[track], generator=generator,
                            optimizer=torch.optim.SGD(rbm.parameters(), 0.0))  # fmt: skip
        track.on_start(training)
        with torch.no_grad():
            rbm.weight.normal_(0.0, strength, generator=generator)
        training.monitors = (Energies(),)  # somebody who looks, so that there are rows to look at
        training.run()
        record = track(training)
        truth = hm.exact_log_z(rbm).value
        assert abs(record["log_z"] - truth) < 5 * record["log_z_error"] + 0.01
        errors[strength] = record["log_z_error"]
    assert errors[3.0] > 5 * errors[0.1]


def test_weights_that_rest_on_few_particles_do_not_state_a_small_error(
    generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A jump in 12 steps, where 32 weights each way are those of a few particles, and less of one, where they are not.

    Without the rule (the control) the same weights give the same value and a smaller error than as many independent
    particles would have as the weights rest on.
    """
    monkeypatch.setattr(likelihood_track, "_LONGEST_LEG", 12)
    for strength, thin in ((0.5, True), (0.02, False)):
        rbm = hm.RBM(hm.Bernoulli(500), hm.Bernoulli(6), generator=generator).double()
        training = Training(rbm, torch.ones(8, 500).double(), hm.CD(), epochs=1, generator=generator,
                            optimizer=torch.optim.SGD(rbm.parameters(), 0.0), monitors=(Energies(),))  # fmt: skip
        tracks = [LikelihoodTrack(n_particles=32, n_bridges=12, seed=seed) for seed in range(10) for _ in range(2)]
        for track in tracks:
            track.on_start(training)
        with torch.no_grad():
            rbm.weight.normal_(0.0, strength, generator=generator)
            rbm.visible_bias.copy_(-rbm.weight.sum(1) / 2)
            rbm.hidden_bias.copy_(-rbm.weight.sum(0) / 2)
        training.run()
        truth, larger = hm.exact_log_z(rbm).value, 0
        for ruled, free in zip(tracks[::2], tracks[1::2], strict=True):
            record = ruled(training)
            with monkeypatch.context() as patch:
                patch.setattr(likelihood_track, "_THIN", 0.0)
                control = free(training)
            assert record["log_z"] == control["log_z"]
            assert abs(record["log_z"] - truth) < 5 * record["log_z_error"]
            assert record["log_z_error"] >= control["log_z_error"]
            larger += record["log_z_error"] > 1.1 * control["log_z_error"]
        assert (larger > 0) is thin


def test_the_error_knows_what_particles_remember(generator: torch.Generator) -> None:
    """Two modes form in 8 legs, and no chain crosses between them in the 48 legs in which one becomes heavier.

    `Z = 2 cosh(b) (2 cosh w)^16`. How many particles are in a mode is decided once and counts in every leg, so that the
    root of the sum of squares of the legs' own errors (the control) is several times too small.
    """
    off, stated, control = [], [], []
    for seed in range(16):
        rbm = hm.RBM(hm.Spin(16), hm.Spin(1), generator=generator).double()
        track = LikelihoodTrack(n_particles=64, n_bridges=2, seed=seed)
        training = Training(rbm, torch.ones(8, 16).double(), hm.CD(), epochs=1, generator=generator,
                            optimizer=torch.optim.SGD(rbm.parameters(), 0.0), monitors=(Energies(),))  # fmt: skip
        track.on_start(training)
        training.run()
        for leg in range(1, 57):
            with torch.no_grad():
                rbm.weight.fill_(min(leg, 8) / 8)
                rbm.hidden_bias.fill_(max(leg - 8, 0) / 48)
            record = track(training)
        off.append(abs(record["log_z"] - hm.exact_log_z(rbm).value))
        stated.append(record["log_z_error"])
        control.append(math.sqrt(track._squares))
    assert sum(o > 3 * s for o, s in zip(off, stated, strict=True)) <= 1
    assert statistics.fmean((o / c) ** 2 for o, c in zip(off, control, strict=True)) > 2  # 1 if it were the error
    assert statistics.median(stated) < 4 * statistics.median(off)  # and not by stating too much


def test_a_mode_that_all_particles_have_left_is_found_in_the_data(generator: torch.Generator) -> None:
    """All goes from one mode to the other in an epoch, and no particle crosses.

    The rows of the epoch know both modes: log Z is lifted to what they guarantee, and the error says by how much. In
    the control they know one: the particles agree on a value 12 nats too low, and nothing contradicts them.
    """
    for known in (True, False):
        rbm = hm.RBM(hm.Spin(16), hm.Spin(1), generator=generator).double()
        x = torch.ones(64, 16).double()
        x[::2] *= -1.0 if known else 1.0
        track = LikelihoodTrack(n_particles=64, n_bridges=8)
        training = Training(rbm, x, hm.CD(), epochs=1, monitors=[track], generator=generator,
                            optimizer=torch.optim.SGD(rbm.parameters(), 0.0))  # fmt: skip
        track.on_start(training)
        training.monitors = (Energies(),)  # somebody who looks, so that there are rows to look at
        for tilt in (1.0, 6.0, -6.0):
            with torch.no_grad():
                rbm.weight.fill_(1.5)
                rbm.hidden_bias.fill_(tilt)
                rbm.visible_bias.zero_()
            training.epochs += 1
            training.run()
            record = track(training)
        off = record["log_z"] - hm.exact_log_z(rbm).value
        if known:
            assert abs(off) < 0.01 and record["log_z_error"] > 5
            assert track.particles.sum(1).mean().item() < -10  # and goes on from where the mass is
        else:
            assert off == pytest.approx(-12.0, abs=1.5) and record["log_z_error"] < 1


def test_a_wrong_start_is_seen_as_wrong(generator: torch.Generator) -> None:
    """Control of the tests above: log Z off by a nat at the start stays off by a nat."""

    class Shifted(LikelihoodTrack):
        def on_start(self, training: Training) -> None:
            super().on_start(training)
            self.log_z += 1.0

    _, history, exact = tracked(Shifted(n_particles=512), generator)
    assert abs(history["log_z"][-1] - exact[-1]) > 5 * history["log_z_error"][-1] + 0.01


def test_training_is_not_disturbed(generator: torch.Generator) -> None:
    state = generator.get_state()
    rbm, _, _ = tracked(LikelihoodTrack(n_particles=16), generator)
    generator.set_state(state)
    other, _, _ = tracked(LikelihoodTrack(n_particles=64, n_bridges=5, seed=5), generator)
    assert torch.equal(rbm.weight, other.weight)


def test_machines_without_a_closed_free_energy_are_left_alone(generator: torch.Generator) -> None:
    units = {name: hm.Bernoulli(3) for name in ("x", "y", "z")}
    machine = hm.BoltzmannMachine(units, [(("x", "y"), hm.Dense(3, 3)), (("y", "z"), hm.Dense(3, 3))])
    track = LikelihoodTrack()
    track.on_start(Training(machine, torch.ones(4, 3), hm.CD(), optimizer=torch.optim.SGD(machine.parameters(), 0.1),
                            epochs=1, generator=generator))  # fmt: skip
    assert track.old is None


def test_a_layer_tied_to_itself_is_followed(generator: torch.Generator) -> None:
    machine = hm.BoltzmannMachine(
        {"x": hm.Bernoulli(6)}, [(("x", "x"), hm.Symmetric(6)), (("x",), hm.Bias(6))]
    ).double()
    x = (torch.rand(64, 6, generator=generator) < 0.4).double()
    x[:, 1] = x[:, 0]
    history = hm.fit(machine, x, hm.PCD(n_chains=32), optimizer=torch.optim.SGD(machine.parameters(), 0.5), epochs=4,
                     batch_size=16, monitors=[LikelihoodTrack(n_particles=256)], generator=generator)  # fmt: skip
    truth = hm.exact_log_z(machine).value
    assert abs(history.last["log_z"] - truth) < 5 * history.last["log_z_error"] + 0.01
    assert math.isfinite(history.last["log_likelihood"])


def test_other_models_are_left_alone() -> None:
    model = nn.Linear(2, 1)

    class Squares(Objective):
        def loss(self, model, batch, *, generator=None):  # type: ignore[no-untyped-def]
            return model(batch["x"]).square().mean()

    history = hm.fit(model, torch.ones(4, 2), Squares(), optimizer=torch.optim.SGD(model.parameters(), 0.1), epochs=1,
                     monitors=[LikelihoodTrack()])  # fmt: skip
    assert "log_z" not in history.last
    assert LikelihoodTrack().state_dict() == {}
