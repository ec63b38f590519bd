"""The real commands on a tiny joint model: train, resume, sample a class, inpaint, evaluate, list, report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harmonium.cli.entry import run
from harmonium.plots import write_report
from harmonium.runs import Run

TINY = ["--model", "jem", "--data", "digits", "--n-steps", "2", "--n-chains", "200", "--epochs", "3", "--threads", "1"]
TINY += ["--set", "model.options.hidden=[16]", "--set", "run.ais_chains=8", "--set", "run.ais_betas=10"]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HARMONIUM_DATA", raising=False)


def test_from_training_to_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", *TINY, "--no-report"]) == 0
    out = capsys.readouterr().out
    assert "valid accuracy" in out and "valid L_gen" in out and "jem on " in out
    assert "test accuracy" in out and "expected calibration error" in out
    assert "against uniform noise: free energy" in out and "gradient norm" in out and "max softmax" in out
    assert "returns of the guard to a good state: 0" in out and "not the probability of gray levels" in out
    folder = Path("runs/digits-jem-1")
    write_report(Run.open(folder), n_steps=20)
    figures = {path.stem for path in (folder / "figures").iterdir()}
    wanted = {"curve-loss", "curve-generation-loss", "curve-validation-accuracy", "curve-rollbacks", "classes"}
    wanted |= {"reliability", "outliers-uniform-noise-free-energy", "outliers-shuffled-pixels-slope", "inpainting"}
    assert wanted <= figures
    text = (folder / "report.html").read_text()
    assert "The test accuracy is" in text and "AUROC by free energy" in text and "started from noise" in text
    assert run(["sample", str(folder), "--class", "3", "-n", "5", "--steps", "3", "-o", "s.npy"]) == 0
    assert np.load("s.npy").shape == (5, 1, 8, 8)
    assert run(["inpaint", str(folder), "-n", "2", "--steps", "3", "-o", "i.png"]) == 0
    capsys.readouterr()
    assert run(["list", "--json"]) == 0
    (event,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert event["model"] == "jem" and 0 <= event["accuracy"]["value"] <= 1
    assert run(["sample", str(folder), "--class", "12"]) == 2
    assert "are 0..9" in capsys.readouterr().err


def test_flags_reach_the_configuration() -> None:
    flags = ["--network", "small-residual", "--step-size", "0.3", "--noise", "0.1", "--no-buffer", "--labels", "20"]
    flags += ["--generation-weight", "0.5", "--input-noise", "0.2", "--baseline", "--no-report", "--no-evaluate"]
    some = [*TINY[:10], "--epochs", "0", "--threads", "1"]
    assert run(["train", *some, *flags, "-q", "-o", "out"]) == 0
    own: Any = Run.open("out").config.own
    assert (own.network, own.step_size, own.noise, own.buffer) == ("small-residual", 0.3, 0.1, False)
    assert (own.labels, own.generation_weight, own.input_noise, own.baseline) == (20, 0.5, 0.2, True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--model", "jem", "--data", "digits", "--binarize", "sample"], "binarize is not for model 'jem'"),
        (["--model", "rbm", "--data", "digits", "--binarize", "sample", "--labels", "10"], "is not for model 'rbm'"),
        (["--model", "jem", "--data", "ising"], "has no labels"),
        (["--model", "jem", "--data", "digits", "--network", "rnn"], "must be one of mlp"),
        (["--model", "jem", "--data", "digits", "--labels", "7", "--quiet"], "multiple of the 10 classes"),
    ],
)
def test_mistakes_are_said(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", *arguments]) == 2
    assert text in capsys.readouterr().err


def test_a_machine_has_no_classes_to_draw(capsys: pytest.CaptureFixture[str]) -> None:
    some = ["--data", "bars-and-stripes", "--n-hidden", "4", "--epochs", "1", "--no-report", "--no-evaluate", "-q"]
    assert run(["train", *some, "-o", "out"]) == 0
    assert run(["sample", "out", "--class", "1"]) == 2
    assert "has no classes" in capsys.readouterr().err
