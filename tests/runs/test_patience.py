"""A run with patience ends where validation data say so, keeps its best epoch, and resumes exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from harmonium.learning import Callback, Training
from harmonium.learning.history import Record
from harmonium.learning.monitors import Monitor, Patience
from harmonium.runs import Run, resolve, train

SETTINGS: dict[str, Any] = {
    "data": {"name": "bars-and-stripes"},
    "model": {"kind": "rbm", "n_hidden": 4},
    "training": {"epochs": 40, "patience": 3, "learning_rate": 3.0, "objective": "cd", "batch_size": 32},
    "run": {"checkpoint_updates": 1, "threads": 1},
}


class Told(Monitor):
    """Measures what it is told to, epoch by epoch."""

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def __call__(self, training: Training) -> Record:
        return {"validation_log_likelihood": self.values[training.epoch - 1]}


def digits(**training: Any) -> dict[str, Any]:
    data = {"name": "digits", "binarize": "threshold"}
    section = {"epochs": 30, "patience": 2, "learning_rate": 0.5, "batch_size": 256, "n_chains": 16} | training
    return {
        "data": data,
        "model": {"kind": "rbm", "n_hidden": 8},
        "training": section,
        "run": {"checkpoint_updates": 1, "threads": 1},
    }


class StopAt(Callback):
    def __init__(self, update: int) -> None:
        self.update = update

    def on_update(self, training: Training) -> None:
        training.stop = training.stop or training.update == self.update


def fitted(values: list[float], patience: int) -> tuple[Patience, Training]:
    from harmonium import RBM, Bernoulli
    from harmonium.learning.objectives import CD

    x = torch.eye(4)
    rbm = RBM(Bernoulli(4), Bernoulli(2), generator=torch.Generator().manual_seed(0))
    monitor = Patience(Told(values), patience)
    training = Training(
        rbm,
        x,
        CD(),
        optimizer=torch.optim.SGD(rbm.parameters(), 0.1),
        epochs=len(values),
        batch_size=4,
        validation=x,
        monitors=[monitor],
        generator=torch.Generator().manual_seed(0),
    )
    training.run()
    return monitor, training


def test_it_stops_after_so_many_epochs_without_a_better_one() -> None:
    monitor, training = fitted([-5.0, -3.0, -4.0, -3.5, -3.2, -1.0], 3)
    assert (training.epoch, monitor.epoch, monitor.value) == (5, 2, -3.0)
    assert not torch.equal(monitor.best["couplings.0.weight"], training.model.state_dict()["couplings.0.weight"])
    monitor, training = fitted([-5.0, -4.0, -3.0, -2.0], 1)
    assert (training.epoch, monitor.epoch) == (4, 4)


def test_a_metric_that_is_not_measured_is_said() -> None:
    with pytest.raises(ValueError, match="at least 1 epoch"):
        Patience(Told([]), 0)
    monitor = Patience(Told([0.0]), 1, metric="accuracy")
    with pytest.raises(ValueError, match="does not measure"):
        monitor(type("Some", (), {"epoch": 1})())


@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
def test_a_run_keeps_its_best_epoch_and_resumes_exactly(tmp_path: Path) -> None:
    whole = Run.create(tmp_path / "whole", resolve(digits()))
    ended = train(whole)
    assert ended.epoch < 30 and whole.stopped_early and whole.finished
    last = whole.metrics()[-1]
    assert last["epoch"] - last["best_epoch"] == 2
    best = max(whole.metrics(), key=lambda record: record["validation_log_likelihood"])
    assert best["epoch"] == last["best_epoch"]
    kept = whole.parameters("cpu")
    newest = ended.model.state_dict()
    assert any(not torch.equal(kept[name], newest[name]) for name in kept)  # the best is not the last

    for place in (3, ended.update - 1):
        parts = Run.create(tmp_path / f"parts-{place}", resolve(digits()))
        train(parts, callbacks=[StopAt(place)])
        assert not Run.open(parts.folder).finished
        again = Run.open(parts.folder)
        train(again)
        assert again.metrics() == whole.metrics()
        assert all(torch.equal(value, kept[name]) for name, value in again.parameters("cpu").items())
    assert train(Run.open(whole.folder)).update == ended.update  # nothing is left to do


def test_patience_needs_validation_data(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="validation data, and there are none"):
        train(Run.create(tmp_path / "run", resolve(SETTINGS)))
