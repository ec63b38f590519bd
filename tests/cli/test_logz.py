"""`harmonium logz` on tiny data: the table, the files, and mistakes in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harmonium.cli.entry import run
from harmonium.runs import Run, estimate_log_z

TINY = ["--data", "bars-and-stripes", "--n-hidden", "4", "--epochs", "2", "--threads", "1", "--no-report", "-q"]
LITTLE = ["--n-chains", "16", "--n-betas", "20"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the folder of a tiny run."""
    monkeypatch.chdir(tmp_path)
    assert run(["train", *TINY, "--no-evaluate", "-o", "one"]) == 0
    return "one"


def test_logz_by_all_methods(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert run(["logz", folder, "--method", "all", *LITTLE]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("exact", "sandwich", "tempering", "bounds", "bethe", "perturb-and-map"))
    found = json.loads(Path(folder, "log_z.json").read_text())
    exact = found["exact"]["value"]
    assert found["exact"]["trusted"] and not found["bethe"]["trusted"]
    for kind in ("sandwich", "tempering", "bounds"):
        assert found[kind]["at_least"] <= exact <= found[kind]["at_most"]
    assert Path(folder, "log_z.png").read_bytes().startswith(b"\x89PNG")


def test_the_default_picks_and_json_lines_can_be_read(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["logz", folder, "--json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (found,) = (event for event in events if event["event"] == "log_z")
    assert found["kind"] == "exact" and found["value"] == estimate_log_z(Run.open(folder), "exact").value


def test_a_run_says_how_its_log_z_is_estimated(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    little = ["--set", "run.ais_chains=16", "--set", "run.ais_betas=20", "-o", "two"]
    assert run(["train", *TINY, "--log-z", "tempering", *little]) == 0
    assert json.loads(Path("two", "evaluation.json").read_text())["log_z"]["kind"] == "tempering"
    assert estimate_log_z(Run.open("two")).kind == "tempering"
    assert run(["evaluate", folder, "-q"]) == 0  # the same without a word counts
    assert json.loads(Path(folder, "evaluation.json").read_text())["log_z"]["kind"] == "exact"
    assert run(["train", *TINY, "--log-z", "guess", "-o", "three"]) != 0
    assert "must be one of exact, sandwich, tempering" in capsys.readouterr().err


def test_mistakes_are_told(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["logz", folder, "--method", "guess"]) == 2
    assert "--method must be one of exact" in capsys.readouterr().err
    assert run(["logz", "absent"]) == 2
    assert "holds no run" in capsys.readouterr().err
