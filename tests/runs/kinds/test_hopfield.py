"""Hopfield networks on the command line: patterns are stored, come back, and learning goes on from there exactly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from benchmarks.kill_resume import fingerprint
from harmonium.cli.entry import run
from harmonium.models import DenseHopfield, Hopfield
from harmonium.plots import write_report
from harmonium.runs import Run

STORE = ["train", "--model", "hopfield", "--data", "digits", "--threads", "1", "-q", "--no-report"]
STORE += ["--binarize", "threshold"]
SMALL = ["train", "--model", "hopfield", "--data", "bars-and-stripes", "--n-patterns", "3", "--threads", "1", "-q"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HARMONIUM_DATA", raising=False)


def test_patterns_are_stored_scored_drawn_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SMALL, "--no-report", "-o", "one"]) == 0
    opened = Run.open("one")
    model, patterns = opened.model(), opened.rows("train")
    assert isinstance(model, Hopfield) and patterns is not None and patterns.shape == (3, 16)
    assert torch.equal(model.weight, Hopfield.store(patterns, "pseudo-inverse").weight)
    scores = json.loads(Path("one/evaluation.json").read_text())
    assert scores["recall"]["10%"]["recalled"] > scores["recall"]["40%"]["recalled"]
    assert scores["recall"]["10%"]["overlap"] > 0.8 and scores["test"]["kind"] == "exact" and "baseline" not in scores
    write_report(opened, n_steps=5)
    text = Path("one/report.html").read_text()
    assert "Patterns come back" in text and "Recall goes downhill." in text
    assert all(Path(f"one/figures/{name}.png").stat().st_size > 1000 for name in ("recall", "completion", "descent"))
    assert run(["sample", "one", "-n", "3", "--steps", "2", "-o", "s.npy"]) == 0
    capsys.readouterr()
    assert run(["list", "."]) == 0
    assert "3 patterns" in capsys.readouterr().out


def test_dense_networks_are_stored() -> None:
    flags = ["--no-evaluate", "--rule", "dense", "--order", "4", "--n-patterns", "25"]
    assert run([*STORE, *flags, "-o", "dense"]) == 0
    model = Run.open("dense").model()
    assert isinstance(model, DenseHopfield) and model.order == 4 and model.weight.shape == (25, 64)
    assert Run.open("dense").data().train_labels[:12].tolist() == [*range(10), 0, 1]


def test_learning_goes_on_from_the_stored_patterns_and_resumes_exactly() -> None:
    flags = ["--no-evaluate", "--epochs", "3", "--set", "run.checkpoint_updates=1"]
    assert run([*STORE, *flags, "-o", "whole"]) == 0
    assert run([*STORE, *flags, "-o", "stopped"]) == 0
    model = Run.open("whole").model()
    assert isinstance(model, Hopfield)
    assert not torch.equal(model.weight, Run.open("whole").untrained().weight)
    for path in Run.open("stopped").checkpoints.paths()[1:]:  # as if it had been killed before it wrote these
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    Path("stopped/model.safetensors").unlink()
    assert run(["resume", "stopped", "-q"]) == 0
    assert fingerprint(Path("stopped")) == fingerprint(Path("whole"))


def test_mistakes_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*STORE[:4], "moons", "-q"]) == 2
    assert "stores patterns of two values. moons holds real data. Choose binary data" in capsys.readouterr().err
    assert run(STORE[:-2]) == 2
    assert "digits holds levels data. Choose binary data, or gray images with" in capsys.readouterr().err
    assert run([*STORE[:-2], "--binarize", "scale"]) == 2
    assert "binarize = 'scale'" in capsys.readouterr().err
    assert run([*STORE, "--n-patterns", "5000"]) == 2
    assert "There are 1,266 training samples of digits, and n_patterns is 5000." in capsys.readouterr().err
    assert run([*STORE, "--rule", "oja"]) == 2
    assert "[hopfield] rule must be" in capsys.readouterr().err
    assert run([*STORE, "--n-hidden", "3"]) == 2
    assert "[model] n_hidden is not for model 'hopfield'" in capsys.readouterr().err
