"""Real processes, killed with SIGKILL at random moments, end bit for bit as if they had not been."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.kill_resume import fingerprint, kills, reference
from benchmarks.tiny_runs import write_cases


@pytest.mark.slow
def test_killed_runs_resume_exactly() -> None:
    outcomes = list(kills(2, seed=1, every=10, cases=("pcd", "missing")))
    assert len(outcomes) == 2
    assert all(outcome.exact and outcome.n_corrupt == 0 for outcome in outcomes), outcomes


@pytest.mark.slow
def test_another_seed_is_another_run(tmp_path: Path) -> None:
    """The negative control: the comparison sees a run that differs."""
    configs = write_cases(tmp_path, every=50)
    other = tmp_path / "other.toml"
    other.write_text(configs["pcd"].read_text().replace("[run]", "[run]\nseed = 1"))
    reference(configs["pcd"], tmp_path / "one")
    reference(other, tmp_path / "two")
    one, two = fingerprint(tmp_path / "one"), fingerprint(tmp_path / "two")
    assert one["update"] == two["update"]
    assert all(one[name] != two[name] for name in ("model", "metrics", "state"))
    shutil.rmtree(tmp_path / "two")
