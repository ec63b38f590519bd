"""The real commands on a tiny deep belief network: train, sample, evaluate, list, report, resume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harmonium.cli.entry import run
from harmonium.plots import write_report
from harmonium.runs import KINDS, Run

TINY = ["--model", "dbn", "--data", "digits", "--n-steps", "1", "--epochs", "4", "--threads", "1"]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HARMONIUM_DATA", raising=False)


def test_from_training_to_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", *TINY, "--spec", "conv 4 4x4/2, dense 16, dense 20", "--no-report"]) == 0
    out = capsys.readouterr().out
    assert "dbn.spec = " in out and "log-likelihood: none" in out and "test unexplained share from depth" in out
    folder = Path("runs/digits-dbn-1")
    write_report(Run.open(folder), n_steps=5)
    figures = {path.stem for path in (folder / "figures").iterdir()}
    assert {"curve-unexplained-1", "curve-activity-1", "samples", "depths", "filters"} <= figures
    text = (folder / "report.html").read_text()
    assert "leave" in text and "% unexplained" in text and "1×8×8 → 4×4×4 → 16 → 20" in text
    assert run(["sample", str(folder), "-n", "5", "--steps", "3", "-o", "s.npy"]) == 0
    images = np.load("s.npy")
    assert images.shape == (5, 1, 8, 8) and images.min() >= 0 and images.max() <= 1
    assert run(["resume", str(folder), "--quiet"]) == 0
    capsys.readouterr()
    assert run(["evaluate", str(folder), "--json"]) == 0
    (event,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert len(event["unexplained"]["test"]["value"]) == 3
    assert run(["list"]) == 0
    assert "3 layers" in capsys.readouterr().out
    assert run(["inpaint", str(folder)]) == 2
    assert "cannot fill in missing values" in capsys.readouterr().err


def test_flags_reach_the_configuration() -> None:
    flags = ["--spec", "dense 9, dense 8", "--levels", "3", "--order", "greedy", "--no-report", "--no-evaluate"]
    flags += ["--top", "multinary", "--k", "0.5", "--activation", "relu", "--rates", "one", "--optimizer", "sgd"]
    assert run(["train", *TINY, "--epochs", "0", *flags, "-q", "-o", "out"]) == 0
    own: Any = Run.open("out").config.own
    assert (own.spec, own.levels, own.order) == ("dense 9, dense 8", 3, "greedy")
    assert (own.top, own.k, own.activation, own.rates) == ("multinary", 0.5, "relu", "one")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--model", "dbn", "--data", "digits", "--binarize", "sample"], "binarize is not for model 'dbn'"),
        (["--model", "dbn", "--data", "digits", "--n-hidden", "10"], "n_hidden is not for model 'dbn'"),
        (["--model", "rbm", "--data", "digits", "--binarize", "sample", "--levels", "1"], "is not for model 'rbm'"),
        (["--model", "dbn", "--data", "moons"], "is for images with levels"),
        (["--model", "dbn", "--data", "digits", "--spec", "dens 9", "--quiet"], "it is not understood"),
        (["--model", "dnb", "--data", "digits"], "must be one of rbm, gaussian-rbm, jem, dbn"),
    ],
)
def test_mistakes_are_said(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", *arguments]) == 2
    assert text in capsys.readouterr().err


def test_the_kinds_of_models_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["info"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in KINDS) and "deep belief network; learns images" in out
    assert run(["train", "--help"]) == 0
    assert "--model dbn: deep belief network" in capsys.readouterr().out


def test_what_cannot_be_trained_leaves_no_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--data", "digits", "--model", "dbn", "--epochs", "1", "--threads", "1", "-q"]) == 2
    assert "must be at least 2" in capsys.readouterr().err
    assert not Path("runs").exists()
