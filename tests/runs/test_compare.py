"""Runs side by side: what differs, and paired differences against their closed form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harmonium.cli.entry import run as command
from harmonium.evaluation.likelihood import log_likelihood
from harmonium.runs import Difference, Run, compare, differing_settings, evaluate, resolve, train


def trained(folder: Path, seed: int, n_hidden: int = 4, **data: Any) -> Run:
    settings = {
        "data": {"name": "bars-and-stripes", **data},
        "model": {"n_hidden": n_hidden},
        "training": {"epochs": 2, "n_chains": 8},
        "run": {"threads": 1, "seed": seed},
    }
    run = Run.create(folder, resolve(settings))
    train(run)
    run.write_evaluation(evaluate(run))
    return run


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    return [trained(tmp_path / "a", 0), trained(tmp_path / "b", 1, n_hidden=6)]


def test_differences_are_paired(runs: list[Run]) -> None:
    one, other = compare(runs)
    assert differing_settings(runs) == {"model.n_hidden": [4, 6], "run.seed": [0, 1]}
    rows = runs[0].trained().rows("test")
    a, b = (log_likelihood(run.model(), rows).value for run in runs)
    gaps = (b - a).double()
    found = other.difference
    assert one.difference is None and found is not None
    assert found.value == pytest.approx(gaps.mean().item(), abs=1e-5)
    assert found.spread == pytest.approx((gaps.std() / len(gaps) ** 0.5).item(), rel=1e-3)
    assert found.error == 0  # both log Z are exact


def test_a_run_compared_with_itself_does_not_differ(runs: list[Run]) -> None:
    """Its likelihood has a spread over the samples; the difference has none, since it is paired."""
    one, other = compare([runs[0], Run.open(runs[0].folder)])
    found = other.difference
    assert one.scores["test"]["spread"] > 0
    assert found is not None and found.value == 0 and found.spread == 0 and not found.clear
    assert Difference(1.0, 0.1, 0.1, 9).clear


def test_other_data_cannot_be_compared(runs: list[Run], tmp_path: Path) -> None:
    other = trained(tmp_path / "c", 0, options={"size": 3})
    found = compare([runs[0], other])[1]
    assert found.difference is None and "cannot be compared" in found.why_not
    with pytest.raises(ValueError, match="Two or more"):
        compare(runs[:1])


def test_the_commands(runs: list[Run], tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(["compare", "a", "b", "--steps", "3"]) == 0
    out = capsys.readouterr().out
    assert "model.n_hidden" in out and "nats a sample" in out
    text = (tmp_path / "compare.html").read_text()
    assert text.count("<img") >= 4 and "http" not in text
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.toml").write_text("[data")
    monkeypatch.setenv("COLUMNS", "80")
    assert command(["list", "."]) == 0
    out = capsys.readouterr().out
    assert "cannot be read" in out and "seed 1" in out
    assert max(map(len, out.splitlines())) <= 80
