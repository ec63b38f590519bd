"""Boltzmann machines in general on the command line."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.kill_resume import fingerprint
from harmonium.cli.entry import run
from harmonium.inference import ClampedChains
from harmonium.plots import write_report
from harmonium.runs import KINDS, Run
from harmonium.runs.build import build_training

ROOT = Path(__file__).resolve().parents[3]
SMALL = ["train", "--model", "boltzmann", "--data", "ising", "--threads", "1", "-q", "--no-report"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HARMONIUM_DATA", raising=False)


def test_without_hidden_units_it_learns_couplings(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SMALL, "--epochs", "4", "-o", "one"]) == 0
    opened = Run.open("one")
    model = opened.model()
    assert model.layers == ("visible",) and not model.couplings[0].matrix().eq(0).all()
    scores = json.loads(Path("one/evaluation.json").read_text())
    assert scores["test"]["kind"] == "exact" and scores["test"]["value"] > scores["baseline"]["value"]
    write_report(opened, n_steps=3)
    assert "Who acts on whom." in Path("one/report.html").read_text()
    assert run(["sample", "one", "-n", "3", "--steps", "2", "-o", "s.npy"]) == 0
    capsys.readouterr()
    assert run(["info", "one"]) == 0
    said = capsys.readouterr().out
    assert "boltzmann on ising, 4 of 4 epochs" in said and "test log-likelihood in nats" in said
    assert "272 numbers in model.safetensors" in said and "report: one/report.html" in said


def test_hidden_units_tied_to_each_other_resume_exactly() -> None:
    flags = ["--no-evaluate", "--units", "10", "--tied", "--epochs", "2", "--batch-size", "500"]
    flags += ["--set", "run.checkpoint_updates=1", "--set", "data.options.n_samples=1000"]
    assert run([*SMALL, *flags, "-o", "whole"]) == 0
    opened = Run.open("whole")
    assert isinstance(build_training(opened.config, opened.prepared).objective.inference, ClampedChains)  # type: ignore[attr-defined]
    assert run([*SMALL, *flags, "-o", "stopped"]) == 0
    for path in Run.open("stopped").checkpoints.paths()[1:]:  # as if it had been killed before it wrote these
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    Path("stopped/model.safetensors").unlink()
    assert run(["resume", "stopped", "-q"]) == 0
    assert fingerprint(Path("stopped")) == fingerprint(Path("whole"))


def test_mistakes_and_kinds_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SMALL[:4], "moons", "-q"]) == 2
    assert "moons holds real data, which model 'boltzmann' does not take." in capsys.readouterr().err
    assert run([*SMALL[:4], "digits", "--binarize", "scale", "-q"]) == 2
    assert "has binary units" in capsys.readouterr().err
    assert run([*SMALL[:4], "digits", "-q"]) == 2
    assert "digits holds levels 0..16, and binarize is none. Choose --binarize" in capsys.readouterr().err
    assert run(["info", "nowhere"]) == 2
    assert "nowhere holds no run" in capsys.readouterr().err
    assert run(["info"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert all(kind.summary.split(";")[0].split(",")[0][:30] in said for kind in KINDS.values())


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    known = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
    return subprocess.run([sys.executable, *arguments], env=known, capture_output=True, text=True, check=False)


def test_python_m_harmonium() -> None:
    done = command("-m", "harmonium", "--help")
    assert done.returncode == 0 and "harmonium demo" in done.stdout


def test_the_example_runs(tmp_path: Path) -> None:
    done = command(
        "-W", "ignore", str(ROOT / "examples" / "boltzmann_machines.py"), "--smoke", "--output", str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["errors"]["exact"][1][0] < results["errors"]["exact"][0][0]  # ten times the samples
    assert all(math.isfinite(value) for values in results["kl"].values() for value in values)
    assert (tmp_path / "boltzmann.png").stat().st_size > 10_000


def test_images_of_who_acts_on_whom() -> None:
    """Of images the couplings are shown as images, those of hidden units where there are any."""
    flags = ["train", "--model", "boltzmann", "--data", "digits", "--binarize", "threshold", "--epochs", "1", "-q"]
    for units, names in (("0", {"couplings", "ties"}), ("3", {"couplings", "ties", "hidden"})):
        assert run([*flags, "--units", units, "--no-evaluate", "--no-report", "--threads", "1", "-o", units]) == 0
        write_report(Run.open(units), n_steps=2)
        drawn = {path.stem for path in Path(units, "figures").iterdir()}
        assert drawn & {"couplings", "ties", "hidden"} == names
