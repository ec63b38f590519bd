"""Samples of a run are scored against its data, by the function and by the command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harmonium.cli.entry import run as command
from harmonium.evaluation.images import choose_network as choosing
from harmonium.runs import Run, resolve, score_samples, train


@pytest.fixture(autouse=True)
def _a_quick_classifier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(choosing, "_N_SEEN", 15_000)


def trained(folder: str, epochs: int) -> Run:
    sections = {
        "data": {"name": "digits", "binarize": "threshold"},
        "model": {"n_hidden": 64},
        "training": {"epochs": epochs, "n_chains": 50, "learning_rate": 0.1, "batch_size": 20},
        "run": {"threads": 1},
    }
    run = Run.create(folder, resolve(sections))
    train(run)
    return run


@pytest.mark.filterwarnings("ignore::harmonium.learning.monitors.HealthWarning")
def test_training_brings_samples_closer(capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    good = score_samples(trained("runs/good", 20), 300, n_steps=200, say=said.append)
    bad = score_samples(trained("runs/bad", 1), 300, n_steps=200)
    assert good["frechet"]["network"] == bad["frechet"]["network"]  # one classifier for both runs
    assert len(list(Path("runs/feature-networks").iterdir())) == 1
    assert good["frechet"]["value"] + 5 * good["frechet"]["error"] < bad["frechet"]["value"]
    assert good["frechet"]["floor"] < good["frechet"]["value"]
    assert good["frechet"]["network"] in said[-1]

    assert (
        command(["evaluate", "runs/good", "--samples", "300", "--steps", "200", "--n-chains", "4", "--n-betas", "20"])
        == 0
    )
    out = capsys.readouterr().out
    assert good["frechet"]["text"] in out and good["shares"]["text"] in out
    kept = json.loads(Path("runs/good/evaluation.json").read_text())
    assert kept["generation"]["frechet"] == good["frechet"] and kept["generation"]["n_steps"] == 200


def test_errors_say_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    run = trained("runs/one", 1)
    with pytest.raises(ValueError, match="at least 20"):
        score_samples(run, 5)
    Path("weights.pth").write_bytes(b"not a network")
    assert command(["evaluate", "runs/one", "--samples", "50", "--inception", "weights.pth"]) == 2
    assert "pt_inception-2015-12-05-6726825d.pth" in capsys.readouterr().err
    assert command(["evaluate", "runs/one", "--inception", "weights.pth"]) == 2
    assert "--samples" in capsys.readouterr().err
    assert command(["evaluate", "runs/one", "--samples", "50", "--inception", "absent.pth"]) == 2
