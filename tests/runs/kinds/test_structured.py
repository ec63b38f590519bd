"""Kinds of structured machines on the command line: they train, resume exactly, are scored, drawn from and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.kill_resume import fingerprint
from harmonium.cli import entry
from harmonium.learning import Callback, Training
from harmonium.plots import write_report
from harmonium.runs import Config, Run, draw, evaluate, inpaint, resolve, train

TINY: dict[str, dict[str, Any]] = {
    "subspace-rbm": {
        "data": {"name": "digits", "binarize": "threshold"},
        "model": {"n_hidden": 4},
        "training": {"epochs": 2, "n_chains": 10, "n_steps": 1, "batch_size": 200},
    },
    "temporal-rbm": {
        "data": {"name": "bouncing-balls", "options": {"n_samples": 30, "n_frames": 8, "size": 6}},
        "model": {"n_hidden": 5},
        "temporal-rbm": {"order": 2, "recurrent": True},
        "training": {"epochs": 2, "n_steps": 1},
    },
    "gated-rbm": {
        "data": {"name": "shifted-dots", "options": {"n_samples": 200, "size": 8}},
        "model": {"n_hidden": 5},
        "gated-rbm": {"factors": 4},
        "training": {"epochs": 2},
    },
    "spike-slab-rbm": {
        "data": {"name": "digits"},
        "model": {"n_hidden": 5},
        "training": {"epochs": 2, "n_chains": 10, "batch_size": 300},
    },
    "scale-mixture": {
        "data": {"name": "digits"},
        "model": {"n_hidden": 5},
        "scale-mixture": {"slabs": 2, "scales": 6},
        "training": {"epochs": 2, "n_chains": 10, "batch_size": 300},
    },
}
PICTURES = {
    "subspace-rbm": ("groups", "samples", "inpainting"),
    "temporal-rbm": ("predictions", "strip", "film"),
    "gated-rbm": ("analogies", "filter-pairs"),
    "spike-slab-rbm": ("samples", "filters", "singular-values"),
    "scale-mixture": ("samples", "lengths", "scales", "filters", "singular-values"),
}
SHAPES = {
    "subspace-rbm": (1, 8, 8),
    "temporal-rbm": (8, 6, 6),
    "gated-rbm": (2, 8, 8),
    "spike-slab-rbm": (1, 8, 8),
    "scale-mixture": (1, 8, 8),
}


def tiny(kind: str) -> Config:
    settings = TINY[kind]
    run = {"threads": 1, "ais_chains": 32, "ais_betas": 20}
    return resolve(settings | {"model": {**settings.get("model", {}), "kind": kind}, "run": run})


class StopAt(Callback):
    """Stops after one update, as a signal would."""

    def __init__(self, update: int) -> None:
        self.update = update

    def on_update(self, training: Training) -> None:
        training.stop = training.update == self.update


@pytest.mark.filterwarnings("ignore:log Z is not trustworthy")
@pytest.mark.parametrize("kind", list(TINY))
def test_it_trains_resumes_exactly_and_is_reported(kind: str, tmp_path: Path) -> None:
    run = Run.create(tmp_path / "whole", tiny(kind))
    n_updates = train(run).update
    stopped = tmp_path / "stopped"
    assert train(Run.create(stopped, tiny(kind)), callbacks=[StopAt(n_updates - 2)]).update == n_updates - 2
    assert fingerprint(stopped) != fingerprint(run.folder)  # control: it had not ended
    train(Run.open(stopped))
    assert fingerprint(stopped) == fingerprint(run.folder)
    scores = evaluate(run)
    assert {"error", "spread", "n"} <= set(scores["test"])
    assert run.kind.lines(scores) and run.kind.headline(scores)
    run.write_evaluation(scores)
    write_report(run, n_steps=5)
    assert all((run.folder / "figures" / f"{name}.png").stat().st_size > 0 for name in PICTURES[kind])
    assert entry.run(["sample", str(run.folder), "-n", "3", "--steps", "2", "-q"]) == 0
    assert (run.folder / "samples.png").stat().st_size > 0
    assert tuple(draw(run, 3, n_steps=2).shape) == (3, *SHAPES[kind])
    fills_in = kind != "scale-mixture"  # a scale is that of all values
    assert (entry.run(["inpaint", str(run.folder), "-n", "3", "--steps", "2", "-q"]) == 0) is fills_in
    assert (run.folder / "inpainting.png").exists() is fills_in


def test_a_scale_mixture_says_what_it_cannot_take(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "holes.npy"
    x = np.random.default_rng(0).normal(size=(60, 4)).astype("float32")
    np.save(table, x)
    told = ["train", "--data", str(table), "--model", "scale-mixture", "-q", "--no-report", "--epochs", "1"]
    # More filters than directions start as they are drawn, and values are no images.
    assert entry.run([*told, "-o", str(tmp_path / "whole"), "--n-hidden", "5", "--threads", "1"]) == 0
    assert entry.run([*told, "--objective", "score-matching", "-o", str(tmp_path / "other")]) == 2
    assert "Use cd, mean-field-cd, pcd" in capsys.readouterr().err
    x[3, 1] = np.nan
    np.save(table, x)
    assert entry.run([*told, "-o", str(tmp_path / "holes")]) == 2
    assert "a scale mixture needs whole samples" in capsys.readouterr().err


def test_conditions_are_not_taken_away(tmp_path: Path) -> None:
    """Of a pair only the second image is filled in, of a film only frames that have a past."""
    for kind, kept in (("gated-rbm", 1), ("temporal-rbm", 2)):
        run = Run.create(tmp_path / kind, tiny(kind))
        train(run)
        result = inpaint(run, "half", n=3, n_steps=1)
        holes = result.given.isnan().flatten(2).any(2)
        assert not bool(holes[:, :kept].any()) and bool(holes[:, kept:].all())
        assert not bool(result.filled.isnan().any())
