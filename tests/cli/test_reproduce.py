"""`harmonium reproduce`."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harmonium.cli.commands import make_app
from harmonium.cli.signals import Stopped, StopSignals
from harmonium.data import load
from harmonium.experiments.table1 import cell as table1
from harmonium.experiments.table1.feature_recipe import FeatureRecipe
from harmonium.experiments.table1.stack_recipe import StackRecipe
from harmonium.experiments.table1.stack_recipes import STACKS
from harmonium.learning import Training

SMALL = FeatureRecipe(n_filters=8, kernel=4, n_patches=500, epochs=1, batch_size=64, grid=2)


def test_a_table_is_written_and_its_cells_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table of a data set that needs no files."""
    monkeypatch.setitem(table1.PAPER, "digits", {})
    monkeypatch.setitem(table1.RECIPES, "digits", SMALL)
    out = tmp_path / "table1"
    command = ["reproduce", "table1", "--data", "digits", "--levels", "3", "--seeds", "2", "--output", str(out)]
    first = CliRunner().invoke(make_app(), command)
    assert first.exit_code == 0, first.output
    assert first.output.count("epoch 1/1") == 2  # the progress of both trainings
    assert "| digits | 3 |" in (out / "table1.md").read_text()
    cells = {path.parent.name: path.stat().st_mtime_ns for path in out.glob("*/evaluation.json")}
    assert set(cells) == {"digits-3-0", "digits-3-1"}
    assert CliRunner().invoke(make_app(), command).exit_code == 0
    assert {path.parent.name: path.stat().st_mtime_ns for path in out.glob("*/evaluation.json")} == cells
    listed = CliRunner().invoke(make_app(), ["list", str(tmp_path), "--json"])
    events = [json.loads(line) for line in listed.output.splitlines()]
    assert [(event["data"], event["model"], event["epochs"]) for event in events] == [("digits", "table1", 1)] * 2
    assert all("(sample)" in event["score"] for event in events)
    cell = str(out / "digits-3-0")
    assert (out / "digits-3-0/report.html").is_file()
    (out / "digits-3-0/report.html").unlink()
    for again in (["report", cell], ["resume", cell]):
        assert CliRunner().invoke(make_app(), again).exit_code == 0
        assert (out / "digits-3-0/report.html").is_file()
    assert "holds an experiment" in str(CliRunner().invoke(make_app(), ["sample", cell]).exception)


def test_a_signal_saves_the_filters_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped after its third update, the same command ends with the filters of one that was not stopped."""
    monkeypatch.setitem(table1.PAPER, "digits", {})
    monkeypatch.setitem(table1.RECIPES, "digits", SMALL)
    command = ["reproduce", "table1", "--data", "digits", "--levels", "3", "--output"]
    on_update = StopSignals.on_update

    def interrupt(signals: StopSignals, training: Training) -> None:
        on_update(signals, training)
        if training.update == 3:
            signal.raise_signal(signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(StopSignals, "on_update", interrupt)
        stopped = CliRunner().invoke(make_app(), [*command, str(tmp_path / "stopped")])
    assert isinstance(stopped.exception, Stopped)
    assert "Go on with the same command" in str(stopped.exception)
    folder = tmp_path / "stopped" / "digits-3-0" / "checkpoints"
    assert [path.name for path in folder.iterdir()] == ["update-000000003"]
    for name in ("stopped", "whole"):
        assert CliRunner().invoke(make_app(), [*command, str(tmp_path / name)]).exit_code == 0
    files = [tmp_path / name / "digits-3-0" / "model.safetensors" for name in ("stopped", "whole")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_other_data_are_refused(tmp_path: Path) -> None:
    result = CliRunner().invoke(make_app(), ["reproduce", "table1", "--data", "moons", "--output", str(tmp_path)])
    assert isinstance(result.exception, ValueError)
    assert "Table 1 has mnist" in str(result.exception)
    assert load("moons").kind == "real"  # it exists, but is not in the table


STACK = StackRecipe(
    groups=(1, 1), sides=(2, 2), kernels=(3, 2), n_components=(0, 4), border=1, n_patches=300, epochs=1, costs=(0.01,)
)


def test_the_papers_network_and_its_controls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One cell for each source of filters, a table with the differences, and nothing done twice."""
    monkeypatch.setitem(STACKS, "digits", STACK)
    out = tmp_path / "stacks"
    command = ["reproduce", "table1", "--network", "paper", "--data", "digits", "--levels", "3", "--images", "200"]
    command += ["--layers", "1+2", "--activation", "sigmoid", "--k", "0.5", "--output", str(out)]
    result = CliRunner().invoke(make_app(), command)
    assert result.exit_code == 0, result.output
    names = ("learned", "patches", "k-means", "components", "random")
    cells = {path.parent.name: path.stat().st_mtime_ns for path in out.glob("*/evaluation.json")}
    assert set(cells) == {f"digits-3-sigmoid-{name}-0" for name in names}
    rows = (out / "table1.md").read_text().splitlines()[2:]
    assert [row.split(" | ")[5] for row in rows] == list(names)
    assert [" ± " in row.split(" | ")[8] for row in rows] == [False, True, True, True, True]
    assert CliRunner().invoke(make_app(), command).exit_code == 0
    assert {path.parent.name: path.stat().st_mtime_ns for path in out.glob("*/evaluation.json")} == cells


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--network", "deep"], "must be patches or paper. Got deep"),
        (["--network", "paper", "--budget", "3"], "--budget is for --network patches"),
        (["--network", "paper", "--data", "moons"], "Table 1 has mnist.*or a folder with a folder a class"),
    ],
)
def test_what_the_networks_do_not_take(words: list[str], text: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(make_app(), ["reproduce", "table1", *words, "--output", str(tmp_path)])
    assert isinstance(result.exception, ValueError)
    assert re.search(text, str(result.exception))
