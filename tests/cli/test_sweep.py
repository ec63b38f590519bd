"""A sweep trains every combination once, goes on where it was, and says what failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harmonium.cli.entry import run
from harmonium.cli.sweeping import make_trials
from harmonium.runs import Run

CONFIG = """
[data]
name = "bars-and-stripes"
[training]
epochs = 1
n_chains = 8
[run]
threads = 1
report = false
[sweep]
"model.n_hidden" = [2, 3]
"training.learning_rate" = [0.1]
"""


def test_every_combination_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(CONFIG)
    assert run(["sweep", "grid.toml", "--jobs", "2"]) == 0
    out = capsys.readouterr().out
    names = ["n_hidden-2_learning_rate-0.1", "n_hidden-3_learning_rate-0.1"]
    assert all(name in out for name in names) and "nats a sample" in out
    assert (tmp_path / "sweeps/grid/compare.html").is_file()
    assert [Run.open(tmp_path / "sweeps/grid" / name).config.model.n_hidden for name in names] == [2, 3]
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "sweeps/grid").glob("*/metrics.jsonl")}
    assert run(["sweep", "grid.toml", "-q"]) == 0
    assert made == {path: path.stat().st_mtime_ns for path in made}  # nothing is trained twice


def test_errors_before_anything_is_trained(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="needs a section"):
        make_trials({"data": {"name": "ising"}}, tmp_path)
    with pytest.raises(ValueError, match="n_hidden"):
        make_trials({"data": {"name": "ising"}, "sweep": {"model.n_hidden": [2, "many"]}}, tmp_path)
    with pytest.raises(ValueError, match="given twice"):
        make_trials({"data": {"name": "ising"}, "sweep": {"model.n_hidden": [2, 2]}}, tmp_path)
    lists = {"model.n_hidden": [2, 3], "run.seed": [0, 1, 2]}
    trials = make_trials({"data": {"name": "ising"}, "sweep": lists}, tmp_path)
    assert len(trials) == 6 and not any(trial.done() for trial in trials)
