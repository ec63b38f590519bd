"""`harmonium logz` on tiny data: the table, the files, and mistakes in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from harmonium.cli.entry import run
from harmonium.cli.logz import log_z_table
from harmonium.runs import Run, estimate_log_z
from harmonium.types import Estimate

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


@pytest.mark.parametrize("shown", [True, False])
def test_no_figure_is_cut_off_in_eighty_columns(shown: bool) -> None:
    """The control, columns that may not wrap, loses the ends of numbers."""
    found = Estimate(-1117.37412, 0.00032, -1117.373, -1117.375, "perturb-and-map", at_least=-1118.1, at_most=-1117.2)
    table = log_z_table({"perturb-and-map": found})
    for column in table.columns:
        column.no_wrap = column.no_wrap or not shown
    console = Console(width=80)
    with console.capture() as captured:
        console.print(table)
    figures = ("perturb-and-map", "-1117.3741", "0.00032", "-1117.373", "-1117.375", "-1118.100", "-1117.200", "yes")
    assert all(figure in captured.get() for figure in figures) is shown
