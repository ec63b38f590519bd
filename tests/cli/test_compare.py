"""The command that compares learning rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harmonium.cli.entry import run


def test_compare_objectives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["compare-objectives", "--objective", "exact", "--objective", "pcd", "--n-visible", "5", "--n-hidden", "3"]
    flags += ["--strength", "1", "--seeds", "1", "--rate", "0.05", "--seconds", "0.02", "--rows", "50"]
    flags += ["--output", str(tmp_path / "out")]
    assert run(flags) == 0
    printed = capsys.readouterr().out
    assert "4/4  strength 1  seed 0  pcd  rate 0.05" in printed
    assert "| independent units |" in printed
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"settings.json", "races.jsonl", "comparison.json", "comparison.png", "table.md"}
    assert len(json.loads((tmp_path / "out" / "comparison.json").read_text())["results"]) == 2
    assert run([*flags, "--seeds", "2"]) == 2
    assert "Choose another --output" in capsys.readouterr().err
