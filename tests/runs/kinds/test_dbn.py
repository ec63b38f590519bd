"""Deep belief networks by configuration: settings, orders of learning, exact resume, scores, samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks.kill_resume import fingerprint
from harmonium.data import Data
from harmonium.evaluation.unexplained import unexplained
from harmonium.learning import Callback, Training
from harmonium.learning.state import snapshot
from harmonium.models import DBN
from harmonium.partition import exact_log_z
from harmonium.runs import Config, ConfigError, Run, draw, evaluate, inpaint, read_config, resolve, train
from harmonium.runs.build import build_schedule, build_training
from harmonium.runs.config import merge
from harmonium.runs.kinds.dbn import DBNKind, default_spec
from harmonium.units import Activation, Bernoulli, Multinary
from harmonium.units.activation import ACTIVATIONS

TINY: dict[str, Any] = {
    "data": {"name": "digits"},
    "model": {"kind": "dbn"},
    "dbn": {"spec": "conv 4 4x4/2, dense 12, dense 10"},
    "training": {"n_steps": 2, "n_chains": 20, "epochs": 6, "batch_size": 200},
    "run": {"threads": 1},
}


def tiny(**sections: dict[str, Any]) -> Config:
    return resolve(merge(TINY, sections))


class StopAt(Callback):
    """Stops after one update, as a signal would."""

    def __init__(self, update: int) -> None:
        self.update = update

    def on_update(self, training: Training) -> None:
        training.stop = training.update == self.update


# --- settings --------------------------------------------------------------------------------------------------------
def test_the_configuration_holds_what_the_model_reads(tmp_path: Path) -> None:
    config = tiny(dbn={"order": "greedy", "levels": 255})
    text = config.to_toml()
    assert "[dbn]" in text and "[jem]" not in text
    assert all(name not in text for name in ("n_hidden", "binarize", "standardize", "sparsity_rate", "ais_chains"))
    assert "dbn" not in resolve({"data": {"name": "moons"}}).model_dump()
    assert "dbn" not in resolve({"data": {"name": "digits"}, "model": {"kind": "jem"}}).model_dump()
    path = tmp_path / "config.toml"
    path.write_text(text)
    assert read_config(path) == config


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"data": {"binarize": "sample"}}, "binarize is not for model 'dbn'"),
        ({"training": {"sparsity_rate": 0.1}}, "sparsity_rate is not for model 'dbn'"),
        ({"dbn": {"activation": "step"}}, "must be one of sigmoid, relu, tanh, softplus"),
        ({"model": {"kind": "rbm"}, "dbn": {"levels": 1}}, r"\[dbn\] is not for model 'rbm'"),
        ({"model": {"kind": "jem"}, "dbn": {"levels": 1}}, r"\[dbn\] is not for model 'jem'"),
        ({"dbn": {"order": "backwards"}}, "must be 'top-last', 'together' or 'greedy'"),
        ({"dbn": {"depth": 3}}, "is not a setting. There are: spec, levels, k, activation, top, order"),
    ],
)
def test_settings_that_would_be_ignored_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        resolve(merge({"data": {"name": "digits"}, "model": {"kind": "dbn"}}, settings))


@pytest.mark.parametrize("size", [8, 13, 25, 28, 32, 50, 64, 96])
def test_the_default_layers_tile_images_of_any_size(size: int) -> None:
    spec = default_spec((3, size, size))
    sides = [shape[-1] for shape in DBN.from_spec(spec, shape=(3, size, size)).shapes if len(shape) == 3]
    assert all(below == 2 * above for below, above in zip(sides, sides[1:], strict=False))
    assert len(sides) != 1 and (not sides or sides[-1] >= 7)


def test_units_have_the_levels_of_the_data_and_the_top_is_binary(tmp_path: Path) -> None:
    dbn = Run.create(tmp_path / "own", tiny()).untrained()
    assert isinstance(dbn, DBN) and dbn.shapes == [(1, 8, 8), (4, 4, 4), (12,), (10,)]
    levels = [(rbm.visible.levels, rbm.hidden.levels) for rbm in dbn if isinstance(rbm.hidden, Multinary)]
    assert levels == [(16, 16), (16, 16)]
    assert isinstance(dbn[-1].visible, Bernoulli) and isinstance(dbn[-1].hidden, Bernoulli)
    binary = Run.create(tmp_path / "binary", tiny(dbn={"levels": 1})).untrained()
    assert isinstance(binary, DBN) and all(isinstance(rbm.visible, Bernoulli) for rbm in binary)


def test_images_stay_small_integers_and_are_restored_to_the_unit_interval(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "own", tiny())
    assert run.data().train.dtype == torch.uint8
    training = build_training(run.config, run.prepared)
    assert training.batches.columns["visible"].dtype == torch.uint8
    wide = Run.create(tmp_path / "wide", tiny(dbn={"levels": 255}))
    ends = [(x.min().item(), x.max().item()) for x in (run.data().train, wide.data().train)]
    assert ends == [(0, 16), (0.0, 255.0)] and "carried to 0..255" in wide.data().note
    for some in (run, wide):
        x = some.rows("test")
        assert x is not None
        torch.testing.assert_close(some.restored(x).max().item(), 1.0)


def test_only_images_are_taken() -> None:
    real = Data("points", torch.zeros(3, 2), None, None, shape=(2,), kind="real")
    with pytest.raises(ValueError, match="is for images with levels, or 0 and 1. points holds real data"):
        DBNKind().values(tiny(), real)


def test_a_wrong_spec_is_said(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", tiny(dbn={"spec": "dense 10, conv 4 4x4/2"}))
    with pytest.raises(ValueError, match="a convolution needs images below it"):
        run.untrained()


def test_all_of_it_can_be_multinary_and_convolutions_alone(tmp_path: Path) -> None:
    own = {"spec": "conv 4 4x4/2, conv 6 4x4/2", "top": "multinary", "k": 0.1, "activation": "tanh", "levels": 255}
    dbn = Run.create(tmp_path / "paper", tiny(dbn=own)).untrained()
    assert isinstance(dbn, DBN) and dbn.shapes == [(1, 8, 8), (4, 4, 4), (6, 2, 2)]
    expected = {"levels": 255, "k": 0.1, "activation": "tanh", "exact": False}
    assert all(units.arguments() == expected for rbm in dbn for units in (rbm.visible, rbm.hidden))
    binary = Run.create(tmp_path / "binary", tiny(dbn=own | {"top": "binary"})).untrained()
    assert isinstance(binary, DBN)
    assert [repr(u) for u in (binary[1].visible, binary[1].hidden)] == ["Bernoulli(4, 4, 4)", "Bernoulli(6, 2, 2)"]


def test_the_rates_and_the_optimizer_are_those_asked_for(tmp_path: Path) -> None:
    def optimizer(**sections: dict[str, Any]) -> torch.optim.Optimizer:
        config = tiny(**sections)
        return DBNKind().optimizer(
            config, Run.create(tmp_path / str(len(list(tmp_path.iterdir()))), config).untrained()
        )

    by_layer, one = optimizer(), optimizer(dbn={"rates": "one"}, training={"learning_rate": 0.03})
    assert isinstance(by_layer, torch.optim.Adam) and len({group["lr"] for group in by_layer.param_groups}) > 3
    assert [group["lr"] for group in one.param_groups] == [0.03] and one.defaults["betas"] == (0.9, 0.999)
    plain = optimizer(training={"optimizer": "sgd", "momentum": 0.5})
    assert isinstance(plain, torch.optim.SGD) and {group["momentum"] for group in plain.param_groups} == {0.5}


@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
@pytest.mark.parametrize("name", [*ACTIVATIONS, "erf"])
def test_a_stack_learns_with_any_activation(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it 255-level units by the paper's loss, one's own curve included: both depths come to know digits."""
    monkeypatch.setitem(ACTIVATIONS, "erf", Activation("erf", lambda x: (1 + x.erf()) / 2))
    own = {"spec": "conv 8 4x4/2, dense 40", "levels": 255, "top": "multinary", "order": "together"}
    learning = {"objective": "mean-field-cd", "epochs": 15, "batch_size": 100, "average": 0.0, "centering": False}
    run = Run.create(tmp_path / "run", tiny(dbn=own | {"activation": name}, training=learning))
    x, mean = run.rows("valid"), run.data().train.float().mean(0)
    assert x is not None
    before = unexplained(run.untrained(), x, mean)  # type: ignore[arg-type]
    train(run)
    after = unexplained(run.model(), x, mean)  # type: ignore[arg-type]
    # 1 is the mean image. With six seeds and four curves 0.9 to 2.8 before, 0.02 to 0.23 and 0.23 to 0.49 after.
    assert min(before) > 0.8 and after[0] < 0.4 and after[1] < 0.8


def test_every_turn_needs_an_epoch(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", tiny(dbn={"order": "greedy"}, training={"epochs": 2}))
    with pytest.raises(ValueError, match="at least 3, one for each turn"):
        train(run)


def test_a_single_machine_is_a_network_too(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", tiny(dbn={"spec": "dense 20"}, training={"epochs": 10}))
    train(run)
    (share,) = evaluate(run)["unexplained"]["test"]["value"]
    assert share < 1 and draw(run, 2, n_steps=2).shape == (2, 1, 8, 8)


# --- who learns when -------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
@pytest.mark.parametrize(
    ("order", "learned"),
    [
        ("together", [{0, 1, 2}, {0, 1, 2}, {0, 1, 2}]),
        ("top-last", [{0, 1}, {0, 1, 2}, {2}]),
        ("greedy", [{0, 1, 2}, {1, 2}, {2}]),  # those above start anew when a turn begins
    ],
)
def test_machines_learn_in_their_turn(order: str, learned: list[set[int]], tmp_path: Path) -> None:
    """Which machines have other parameters after epochs 2, 3 or 4, and 6 than at the mark before."""
    run = Run.create(tmp_path / "run", tiny(dbn={"order": order}, training={"average": 0.0}))
    training = build_training(run.config, run.prepared)
    marks = (2, 4, 6) if order == "greedy" else (2, 3, 6)
    before, moved = weights(training), []

    class Look(Callback):
        def on_epoch(self, training: Training, record: dict[str, Any]) -> None:
            nonlocal before
            if training.epoch in marks:
                now = weights(training)
                moved.append({i for i in range(3) if not torch.equal(now[i], before[i])})
                before = now

    training.callbacks = (Look(),)
    training.run()
    assert moved == learned


def test_every_turn_goes_through_the_whole_schedule() -> None:
    section = tiny(training={"epochs": 6, "schedule": "linear"}).training
    factors = {}
    for turns in (1, 2, 3):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], section.learning_rate)
        schedule = build_schedule(section, optimizer, turns)
        assert schedule is not None
        factors[turns] = [schedule.lr_lambdas[0](epoch) for epoch in range(6)]
    assert factors[1] == pytest.approx([1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6])
    assert factors[2] == pytest.approx([1, 2 / 3, 1 / 3] * 2)
    assert factors[3] == pytest.approx([1, 1 / 2] * 3)


def weights(training: Training) -> list[Tensor]:
    assert isinstance(training.model, DBN)
    return [rbm.weight.detach().clone() for rbm in training.model]


# --- exact resume ----------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
@pytest.mark.parametrize("order", ["top-last", "together", "greedy"])
def test_stopped_and_resumed_is_the_same(order: str, tmp_path: Path) -> None:
    config = tiny(dbn={"order": order})
    train(Run.create(tmp_path / "whole", config))
    n_updates = Run.open(tmp_path / "whole").metrics()[-1]["update"]
    for stop in (1, n_updates // 3, n_updates // 2, n_updates // 2 + 3, n_updates - 1):
        folder = tmp_path / f"stopped-{stop}"
        assert train(Run.create(folder, config), callbacks=[StopAt(stop)]).update == stop
        train(Run.open(folder))
        assert fingerprint(folder) == fingerprint(tmp_path / "whole"), stop


@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
@pytest.mark.parametrize("part", ["learned.objective.2.", "learned.transform.0.", "learned.optimizer."])
def test_a_lost_part_is_noticed(part: str, tmp_path: Path) -> None:
    """The negative control: without the chains of the top, its centers or the state of Adam the end is another."""
    config = tiny(dbn={"order": "together"})
    train(Run.create(tmp_path / "whole", config))
    run = Run.create(tmp_path / "robbed", config)
    tensors, values = snapshot(train(run, callbacks=[StopAt(20)]))
    assert any(name.startswith(part) for name in tensors)
    robbed = {name: torch.zeros_like(x) if name.startswith(part) else x for name, x in tensors.items()}
    run.checkpoints.save(robbed, values)
    train(Run.open(run.folder))
    assert fingerprint(run.folder) != fingerprint(tmp_path / "whole")


# --- a law for the codes of a stack with levels ----------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
def test_with_a_law_of_its_codes_a_stack_of_255_levels_generates(tmp_path: Path) -> None:
    """Samples vary as what the codes keep of digits; those of a top of 255 levels, the control, are one image."""
    own = {"spec": "dense 60, dense 30, dense 80", "levels": 255}
    learning = {"n_steps": 1, "n_chains": 100, "epochs": 60, "batch_size": 100}
    drawn = {}
    for top in ("gaussian", "multinary"):
        run = Run.create(tmp_path / top, tiny(dbn=own | {"top": top}, training=learning))
        train(run)
        drawn[top] = draw(run, 200, n_steps=100).flatten(1)
    dbn = Run.open(tmp_path / "gaussian").model()
    assert isinstance(dbn, DBN) and dbn.shapes == [(64,), (60,), (30,), (27,), (80,)]
    rows = run.rows("train")
    assert rows is not None
    kept = run.restored(dbn.reconstruct(rows, 2)).flatten(1).std(0).mean()
    assert 0.6 < (drawn["gaussian"].std(0).mean() / kept).item() < 1.25  # 0.76 to 0.87 with five seeds
    assert drawn["multinary"].std(0).mean() < 0.1 * kept
    codes = dbn.up(rows, 3)  # centered and scaled by what the layers below have settled at
    assert codes.mean(0).abs().mean() < 0.15 and 0.8 < codes.std(0).mean() < 1.2


@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
@pytest.mark.parametrize("order", ["top-last", "greedy"])
def test_with_a_law_it_resumes_exactly(order: str, tmp_path: Path) -> None:
    config = tiny(dbn={"spec": "conv 4 4x4/2, dense 12, dense 10", "top": "gaussian", "order": order})
    train(Run.create(tmp_path / "whole", config))
    n_updates = Run.open(tmp_path / "whole").metrics()[-1]["update"]
    stop = n_updates * 2 // 3 + 3
    assert train(Run.create(tmp_path / "stopped", config), callbacks=[StopAt(stop)]).update == stop
    train(Run.open(tmp_path / "stopped"))
    assert fingerprint(tmp_path / "stopped") == fingerprint(tmp_path / "whole")


@pytest.mark.parametrize("own", [{"order": "together"}, {"spec": "dense 9"}, {"spec": "dense 9, conv 4 4x4/2"}])
def test_a_law_needs_layers_that_have_settled(own: dict[str, Any], tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", tiny(dbn={"top": "gaussian"} | own))
    with pytest.raises(ValueError, match="A Gaussian top is a law of what the layers below it have settled at"):
        run.untrained()


# --- what a trained run can do ---------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    settings = {"data": {"name": "digits"}, "model": {"kind": "dbn"}, "training": {"epochs": 60, "average": 0.9}}
    run = Run.create(tmp_path_factory.mktemp("dbn") / "run", resolve(settings))
    train(run)
    return run


def test_every_depth_explains_test_images(trained: Run) -> None:
    scores = evaluate(trained)
    first, second, top = scores["unexplained"]["test"]["value"]
    assert first < 0.15 and second < 0.25 and top < 0.7  # 1 is the mean image
    assert scores["unexplained"]["test"]["n"] == 355 and "none" in scores["likelihood"]
    untrained = trained.untrained()
    x, mean = trained.rows("test"), trained.data().train.float().mean(0).flatten()
    assert isinstance(untrained, DBN) and x is not None
    assert min(unexplained(untrained, x, mean)) > 0.6  # the negative control
    dbn = trained.model()
    assert isinstance(dbn, DBN)
    by_hand = ((dbn.reconstruct(x, 2) - x).square().sum() / (x - mean).square().sum()).item()
    assert second == pytest.approx(by_hand, rel=1e-4)


def test_samples_are_near_data_and_differ(trained: Run) -> None:
    x = draw(trained, 100, n_steps=200)
    assert x.shape == (100, 1, 8, 8) and x.min() >= 0 and x.max() <= 1
    assert torch.equal(x, draw(trained, 100, n_steps=200))
    known = trained.restored(trained.data().train.float()).flatten(1)
    order = torch.rand(known.shape, generator=torch.Generator().manual_seed(0)).argsort(0)
    noise = known.gather(0, order)[:100]  # each pixel right on its own

    def distance(images: Tensor) -> float:
        return torch.cdist(images.flatten(1), known).min(1).values.mean().item()

    assert distance(x) < 0.75 * distance(noise)
    assert x.flatten(1).std(0).mean() > 0.4 * known.std(0).mean()  # chains that all end at one image have none


def test_what_it_cannot_do_is_said(trained: Run) -> None:
    with pytest.raises(ValueError, match="A dbn cannot fill in missing values"):
        inpaint(trained, "left", n=2, n_steps=1)
    with pytest.raises(ValueError, match="has no classes to draw from"):
        draw(trained, 1, y=3)


@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
def test_a_binary_network_has_a_bound(tmp_path: Path) -> None:
    """It lies below the likelihood, which counts all states of the layer between, by a few nats at most."""
    sections: dict[str, Any] = {"data": {"name": "bars-and-stripes"}, "dbn": {"spec": "dense 5, dense 4"}}
    run = Run.create(tmp_path / "run", tiny(**sections))
    train(run)
    scores = evaluate(run)
    model, bound = run.model(), scores["test"]
    assert bound["kind"] == "exact bound" and bound["error"] == 0 and bound["spread"] > 0 and "margin" in scores
    h = model[1].visible.configurations(torch.arange(2**5)).float()
    prior = -model[1].free_energy(h).double() - exact_log_z(model[1]).value
    mean = model[0].visible_mean(h).double()
    x = run.trained().rows("test").double()  # type: ignore[union-attr]
    likelihood = x @ mean.log().T + (1 - x) @ (1 - mean).log().T
    exact = (likelihood + prior).logsumexp(1).mean().item()
    assert exact - 3 < bound["value"] < exact + 5 * bound["spread"]
    assert any("in nats, at least" in line and "(exact bound)" in line for line in run.kind.lines(scores))
    large = Run.create(tmp_path / "large", tiny(**sections | {"dbn": {"spec": "dense 101, dense 101"}}))
    train(large)
    assert "Ask for it with: harmonium evaluate" in evaluate(large)["likelihood"]
