"""The real commands on tiny machines that classify, on a deep one, and on the networks that they become."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.kill_resume import fingerprint
from harmonium.cli.entry import run
from harmonium.learning import Callback, Training
from harmonium.plots import write_report
from harmonium.runs import Run, train

FAST = ["--data", "digits", "--threads", "1", "--no-report", "--set", "run.ais_betas=50", "--set", "run.ais_chains=20"]
CLASS = ["train", "--model", "class-rbm", "--n-hidden", "12", "--epochs", "2", *FAST]
DEEP = ["train", "--model", "dbm", "--layers", "12, 10", "--pair-epochs", "1", "--n-steps", "1", "--epochs", "2", *FAST]
pytestmark = [
    pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning"),
    pytest.mark.filterwarnings("ignore:log Z is not trustworthy"),
]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HARMONIUM_DATA", raising=False)


class StopAt(Callback):
    """Stops after one update, as a signal would."""

    def on_update(self, training: Training) -> None:
        training.stop = training.update == 7


@pytest.mark.parametrize("command", [CLASS, DEEP], ids=["class-rbm", "dbm"])
def test_stopped_and_resumed_is_the_same(command: list[str]) -> None:
    assert run([*command, "--no-evaluate", "-q", "-o", "whole"]) == 0
    assert run([*command, "--no-evaluate", "--epochs", "0", "-q", "-o", "empty"]) == 0
    stopped = Run.create("stopped", Run.open("whole").config)
    train(stopped, callbacks=[StopAt()])
    train(Run.open("stopped"))
    assert fingerprint(Path("stopped")) == fingerprint(Path("whole"))
    assert fingerprint(Path("empty")) != fingerprint(Path("whole"))


def test_a_machine_with_classes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*CLASS, "--labels", "200", "--generation-weight", "0.5"]) == 0
    out = capsys.readouterr().out
    assert "test accuracy" in out and "test log-likelihood in nats" in out and "calibration error" in out
    folder = Path("runs/digits-class-rbm-1")
    write_report(Run.open(folder), n_steps=3)
    figures = {path.stem for path in (folder / "figures").iterdir()}
    assert {"classes", "confusions", "reliability", "samples", "filters", "curve-validation-accuracy"} <= figures
    assert run(["sample", str(folder), "-n", "4", "--steps", "3", "--class", "7", "-o", "s.npy"]) == 0
    assert np.load("s.npy").shape == (4, 1, 8, 8)
    assert run(["sample", str(folder), "-n", "4", "--class", "12"]) == 2
    assert "are 0..9. Got 12" in capsys.readouterr().err
    assert run(["fine-tune", str(folder), "--epochs", "2", "-q"]) == 0
    assert run(["list"]) == 0
    assert "digits-network-1" in capsys.readouterr().out.replace("\n", "")


def test_accuracies_are_those_of_the_values_that_were_learned() -> None:
    """Training images that are binarized anew each time are stored gray: as such they would be other data."""
    assert run([*CLASS, "--binarize", "resample", "--epochs", "0", "--no-evaluate", "-q", "-o", "run"]) == 0
    trained = Run.open("run").trained()
    stored, found = trained.rows("train"), trained.labeled("train")
    assert stored is not None and stored.max() == 16
    assert found is not None and found[0].unique().tolist() == [0, 1]


def test_a_deep_machine_and_the_network_that_it_becomes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(DEEP) == 0
    out = capsys.readouterr().out
    assert "bound)" in out and "test log-likelihood in nats, at least" in out
    folder = Path("runs/digits-dbm-1")
    write_report(Run.open(folder), n_steps=3)
    assert {"depths", "filters-2", "samples"} <= {path.stem for path in (folder / "figures").iterdir()}
    assert run(["list"]) == 0
    assert "12–10" in capsys.readouterr().out
    command = ["fine-tune", str(folder), "--labels", "200", "--epochs", "30", "--json", "-o", "net"]
    assert run(command) == 0
    capsys.readouterr()
    assert run(["evaluate", "net", "--json"]) == 0
    (event,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert 0 < event["accuracy"]["test"]["value"] < 1
    write_report(Run.open("net"), n_steps=3)
    assert {"confusions", "reliability", "filters"} <= {path.stem for path in Path("net/figures").iterdir()}
    network = Run.open("net").model()
    assert [network[0].in_features, network[0].out_features, network[2].out_features] == [64, 12, 10]
    assert run(["sample", "net"]) == 2
    assert "no density to draw from" in capsys.readouterr().err
    assert run(["logz", "net"]) == 2
    assert "kind 'network' has no energy of its data, and so no log Z." in capsys.readouterr().err
    assert run(["logz", "net", "--method", "all"]) == 2
    assert "No method gives log Z of this model." in capsys.readouterr().err
    for checkpoint in Run.open("net").checkpoints.paths():
        checkpoint.rename(f"{checkpoint.name}.lost")
    assert run(["resume", "net"]) == 2
    assert "no checkpoint of it is left" in capsys.readouterr().err


def test_a_tuned_network_starts_at_the_machine_and_resumes_exactly() -> None:
    assert run([*DEEP, "--no-evaluate", "-q", "-o", "deep"]) == 0
    tune = ["fine-tune", "deep", "--epochs", "3", "-q", "--set", "run.report=false", "--set", "run.evaluate=false"]
    assert run([*tune, "--epochs", "0", "-o", "start"]) == 0
    made, wanted = Run.open("start").model(), Run.open("deep").model().to_network(10)
    assert all((a == b).all() for a, b in zip(made.parameters(), wanted.parameters(), strict=True))
    assert run([*tune, "-o", "whole"]) == 0
    assert run([*tune, "--epochs", "3", "--set", "run.checkpoint_updates=4", "-o", "again"]) == 0
    one, other = (Run.open(name).model() for name in ("whole", "again"))
    assert all((a == b).all() for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_a_convolutional_stack_of_levels_is_tuned_and_resumed_exactly() -> None:
    quick = ["-q", "--no-report", "--no-evaluate"]
    stack = ["--set", "dbn.spec=conv 3 4x4/2, dense 6", "--set", "dbn.activation=tanh", "--epochs", "2"]
    assert run(["train", "--model", "dbn", "--data", "digits", *stack, *quick, "-o", "levels"]) == 0
    tune = ["fine-tune", "levels", "-q", "--set", "run.report=false", "--set", "run.evaluate=false"]
    assert run([*tune, "--epochs", "0", "-o", "start"]) == 0
    start, dbn = Run.open("start"), Run.open("levels").model()
    digits = start.rows("test")
    expected = dbn.up(16 * digits)  # its top is binary
    torch.testing.assert_close(start.model()[:-1](digits), expected, rtol=0, atol=1e-5)
    assert run([*tune, "--epochs", "3", "-o", "whole"]) == 0
    assert run([*tune, "--epochs", "3", "--set", "run.checkpoint_updates=4", "-o", "again"]) == 0
    one, other = (Run.open(name).model() for name in ("whole", "again"))
    assert all((a == b).all() for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert not all((a == b).all() for a, b in zip(one.parameters(), start.model().parameters(), strict=True))


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (["train", "--model", "class-rbm", "--data", "ising"], "has no labels"),
        (["train", "--model", "network", "--data", "ising"], "has no labels"),
        (["train", "--model", "dbm", "--data", "digits", "--layers", "12"], "must name at least two sizes"),
        (["train", "--model", "network", "--data", "digits", "--widths", "12,x"], "must name widths"),
        (["train", "--model", "class-rbm", "--data", "digits", "--labels", "7"], "must be a multiple of"),
        (["fine-tune", "nowhere"], "holds no run"),
    ],
)
def test_errors_say_what_to_do(command: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command) == 2
    assert text in capsys.readouterr().err
