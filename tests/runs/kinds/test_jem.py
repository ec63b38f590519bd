"""Joint energy models by configuration: settings, labels, exact resume with a guard, scores, outliers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.kill_resume import fingerprint
from harmonium.data.known_labels import known_labels
from harmonium.evaluation.ood import auroc
from harmonium.evaluation.outlier_scores import outlier_scores
from harmonium.learning import Callback, Training
from harmonium.learning.monitors import Guard
from harmonium.learning.objectives import JointLikelihood
from harmonium.learning.state import snapshot
from harmonium.models import JEM
from harmonium.networks import SmallConv
from harmonium.runs import Config, ConfigError, Run, draw, evaluate, inpaint, read_config, resolve, train
from harmonium.runs.build import build_training
from harmonium.runs.config import merge
from harmonium.runs.kinds.jem import JEMKind

TINY: dict[str, Any] = {
    "data": {"name": "digits"},
    "model": {"kind": "jem", "options": {"hidden": [16]}},
    "training": {"n_steps": 2, "n_chains": 200, "epochs": 8},
    "run": {"threads": 1, "ais_chains": 16, "ais_betas": 20},
}


def tiny(**sections: dict[str, Any]) -> Config:
    return resolve(merge(TINY, sections))


class StopAt(Callback):
    """Stops after one update, as a signal would."""

    def __init__(self, update: int) -> None:
        self.update = update

    def on_update(self, training: Training) -> None:
        training.stop = training.update == self.update


class Poison(Callback):
    """Makes a parameter infinite after some updates: the next one diverges."""

    def __init__(self, *updates: int) -> None:
        self.updates = updates

    def on_update(self, training: Training) -> None:
        if training.update in self.updates:
            with torch.no_grad():
                next(training.model.parameters()).fill_(torch.inf)


# --- settings --------------------------------------------------------------------------------------------------------
def test_the_configuration_holds_what_the_model_reads() -> None:
    config = tiny(jem={"labels": 100})
    text = config.to_toml()
    assert "[jem]" in text and "n_hidden" not in text and "objective" not in text and "binarize" not in text
    assert config.own.labels == 100 and config.own.network == "mlp"
    other = resolve({"data": {"name": "moons"}})
    assert "jem" not in other.model_dump() and "n_hidden" in other.to_toml()


def test_it_is_read_back_as_it_was(tmp_path: Path) -> None:
    config = tiny(jem={"noise": 0.0, "buffer": False, "labels": 50})
    path = tmp_path / "config.toml"
    path.write_text(config.to_toml())
    assert read_config(path) == config


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"training": {"objective": "pcd"}}, "objective is not for model 'jem'"),
        ({"model": {"kind": "rbm"}, "jem": {"labels": 10}}, r"\[jem\] is not for model 'rbm'"),
        ({"jem": {"network": "transformer"}}, "must be one of mlp, small-conv, small-residual"),
        ({"jem": {"step_size": 0.0}}, "greater than 0"),
        ({"jem": {"stepsize": 0.1}}, "is not a setting. There are: network, step_size"),
    ],
)
def test_settings_that_would_be_ignored_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        resolve(merge({"data": {"name": "digits"}, "model": {"kind": "jem"}}, settings))


def test_networks_by_data_set() -> None:
    names = {name: JEMKind().recipe(name)["jem"]["network"] for name in ("digits", "mnist", "fashion-mnist", "cifar10")}
    assert list(names.values()) == ["mlp", "small-conv", "small-conv", "small-residual"]
    assert JEMKind().recipe("anything")["jem"]["network"] == "mlp"


def test_options_are_those_of_the_network(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "a", tiny(jem={"network": "small-conv"}, model={"options": {"hidden": 12}}))
    net = run.untrained().net
    assert isinstance(net, SmallConv) and net.hidden == 12 and net.shape == (1, 8, 8) and net.n_outputs == 10
    run = Run.create(tmp_path / "b", tiny(model={"options": {"width": 3}}))
    with pytest.raises(ValueError, match="does not take width. It takes hidden, activation, spectral"):
        run.untrained()


def test_images_are_scaled_and_restored(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", tiny())
    x = run.rows("train")
    assert x is not None and (x.min().item(), x.max().item()) == (-1.0, 1.0)
    assert (run.restored(x).min().item(), run.restored(x).max().item()) == (0.0, 1.0)
    assert "scaled to [-1, 1]" in run.data().note


def test_data_without_labels_are_refused(tmp_path: Path) -> None:
    config = resolve({"data": {"name": "checkerboard"}, "model": {"kind": "jem"}})
    with pytest.raises(ValueError, match="checkerboard has no labels"):
        Run.create(tmp_path / "run", config).data()


# --- what it learns from ---------------------------------------------------------------------------------------------
def task(tmp_path: Path, **own: Any) -> tuple[Training, JointLikelihood]:
    run = Run.create(tmp_path / "run", tiny(jem=own))
    training = build_training(run.config, run.prepared)
    assert isinstance(training.objective, JointLikelihood)
    return training, training.objective


def test_few_labels_are_as_many_of_each_class(tmp_path: Path) -> None:
    training, objective = task(tmp_path, labels=50)
    assert objective.labeled is not None and objective.n_labeled == 50
    assert torch.equal(objective.labeled[1].bincount(), torch.full((10,), 5))
    assert bool((training.batches.columns["y"] == -1).all())
    generator = torch.Generator().manual_seed(0)
    with pytest.raises(ValueError, match="multiple of the 10 classes"):
        known_labels(torch.arange(100) % 10, 15, generator=generator)
    with pytest.raises(ValueError, match="no more than there are"):
        known_labels(torch.arange(100) % 10, 200, generator=generator)


def test_a_baseline_is_a_plain_classifier(tmp_path: Path) -> None:
    _, objective = task(tmp_path, baseline=True)
    assert objective.generation_weight == 0 and objective.buffer is None
    run = Run.open(tmp_path / "run")
    train(run)
    last = run.metrics()[-1]
    assert "generation_loss" not in last and last["validation_loss"] == last["validation_classification_loss"]
    assert "plain classifier" in evaluate(run)["likelihood"]


def test_the_chains_are_as_told(tmp_path: Path) -> None:
    _, objective = task(tmp_path, class_chains=True, starts="class-gaussians", clamp=True, step_size=0.3, noise=0.1)
    assert objective.buffer is not None and objective.buffer.n_classes == 10 and objective.buffer.starts is not None
    assert objective.box == (-1.0, 1.0) and (objective.sampler.step_size, objective.sampler.sigma) == (0.3, 0.1)
    assert objective.n_steps == 2 and objective.buffer.n_chains == 200


def test_chains_may_start_at_clouds(tmp_path: Path) -> None:
    _, objective = task(tmp_path, starts="clouds")
    assert objective.buffer is not None and objective.buffer.starts.n_classes == 4
    with pytest.raises(ValueError, match="have no class"):
        task(tmp_path / "classes", starts="clouds", class_chains=True)


# --- exact resume ----------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
@pytest.mark.parametrize("stop", [30, 55, 62, 75])
def test_a_run_with_rollbacks_resumes_exactly(stop: int, tmp_path: Path) -> None:
    """Diverging at 58 and 68, the guard returns to states that it kept before the stop."""
    config, poison = tiny(), Poison(57, 67)
    train(Run.create(tmp_path / "whole", config), callbacks=[poison])
    whole = Run.open(tmp_path / "whole")
    said = [text for record in whole.metrics() for text in record.get("messages", ())]
    assert whole.metrics()[-1]["rollbacks"] == 2 == len(said)
    run = Run.create(tmp_path / "stopped", config)
    assert train(run, callbacks=[poison, StopAt(stop)]).update == stop
    train(Run.open(run.folder), callbacks=[poison])
    assert fingerprint(run.folder) == fingerprint(whole.folder)


@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
@pytest.mark.parametrize("part", ["monitor.1.good.", "learned.objective.chains"])
def test_a_lost_part_is_noticed(part: str, tmp_path: Path) -> None:
    """The negative control: without the states of the guard, or the chains of the buffer, the end is another."""
    config, poison = tiny(), Poison(57)
    train(Run.create(tmp_path / "whole", config), callbacks=[poison])
    run = Run.create(tmp_path / "robbed", config)
    training = train(run, callbacks=[poison, StopAt(55)])
    assert isinstance(training.monitors[1], Guard)
    tensors, values = snapshot(training)
    assert any(name.startswith(part) for name in tensors)
    run.checkpoints.save({name: x for name, x in tensors.items() if not name.startswith(part)}, values)
    train(Run.open(run.folder), callbacks=[poison])
    assert fingerprint(run.folder) != fingerprint(tmp_path / "whole")


# --- what a trained run can do ---------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    settings = {"training": {"epochs": 20}, "model": {"options": {"hidden": [64]}}}
    run = Run.create(tmp_path_factory.mktemp("jem") / "run", tiny(**settings))
    train(run)
    return run


def test_scores(trained: Run) -> None:
    scores = evaluate(trained)
    model, x, y = trained.model(), trained.rows("test"), trained.data().test_labels
    assert isinstance(model, JEM) and x is not None and y is not None
    right = (model.classify(x) == y).double().mean().item()
    assert scores["accuracy"]["test"]["value"] == right > 0.5
    assert 0 <= scores["calibration_error"]["value"] < 0.5
    assert set(scores["outliers"]) == {"uniform noise", "shuffled pixels"}
    noise = JEMKind().outliers(trained.trained(), x, generator=torch.Generator().manual_seed(1))["uniform noise"]
    inside, outside = (outlier_scores(model, rows)["free_energy"] for rows in (x, noise))
    assert scores["outliers"]["uniform noise"]["free_energy"]["auroc"] == auroc(inside, outside)
    assert scores["rollbacks"] == 0
    assert scores["test"]["lower"] <= scores["test"]["value"] <= scores["test"]["upper"]
    assert scores["baselines"]["the uniform law"]["value"] == pytest.approx(-64 * torch.tensor(2.0).log().item())


def test_many_values_get_no_likelihood(trained: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harmonium.runs.scores._FEW_TO_ANNEAL", 10)
    scores = evaluate(trained)
    assert "not trustworthy" in scores["likelihood"] and "test" not in scores
    assert "text" in evaluate(trained, n_chains=8, n_betas=10)["test"]  # when asked, with its bounds


def test_samples_of_a_class(trained: Run) -> None:
    x = draw(trained, 12, n_steps=100, y=3)
    assert x.shape == (12, 1, 8, 8)
    model = trained.model()
    assert isinstance(model, JEM)
    assert (model.classify(2 * x - 1) == 3).double().mean() > 0.5
    assert torch.equal(x, draw(trained, 12, n_steps=100, y=3))
    with pytest.raises(ValueError, match=r"are 0\.\.9\. Got 10"):
        draw(trained, 1, y=10)


def test_inpainting_keeps_what_is_given(trained: Run) -> None:
    result = inpaint(trained, "left", n=5, n_steps=10)
    known = ~result.given.isnan()
    torch.testing.assert_close(result.filled[known], result.original[known])
    assert not torch.equal(result.filled, result.original)


def test_shuffled_pixels_are_the_same_pixels(trained: Run) -> None:
    x = trained.rows("test")
    assert x is not None
    shuffled = JEMKind().outliers(trained.trained(), x, generator=torch.Generator())["shuffled pixels"]
    assert not torch.equal(shuffled, x)
    torch.testing.assert_close(shuffled.flatten(1).sort(1).values, x.flatten(1).sort(1).values)
