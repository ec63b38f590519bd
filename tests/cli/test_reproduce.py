"""`harmonium reproduce`."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from harmonium.cli.commands import app
from harmonium.data import load
from harmonium.runs import table1
from harmonium.runs.feature_recipe import FeatureRecipe

SMALL = FeatureRecipe(n_filters=8, kernel=4, n_patches=500, epochs=1, grid=2)


def test_a_table_is_written_and_its_cells_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of a data set that needs no files."""
    monkeypatch.setitem(table1.PAPER, "digits", {})
    monkeypatch.setitem(table1.RECIPES, "digits", SMALL)
    monkeypatch.setitem(table1.MINUTES, "digits", 1.0)
    command = ["reproduce", "table1", "--data", "digits", "--levels", "3", "--seeds", "2", "--out", str(tmp_path)]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    assert "| digits | 3 |" in (tmp_path / "table1.md").read_text()
    cells = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("digits-3-?.json")}
    assert set(cells) == {"digits-3-0.json", "digits-3-1.json"}
    assert CliRunner().invoke(app, command).exit_code == 0
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("digits-3-?.json")} == cells


def test_other_data_are_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["reproduce", "table1", "--data", "moons", "--out", str(tmp_path)])
    assert isinstance(result.exception, ValueError)
    assert "Table 1 has mnist" in str(result.exception)
    assert load("moons").kind == "real"  # it exists, but is not in the table
