"""`torchrun -m harmonium train`: one run of several workers, and checkpoints that any number of them goes on from."""

from __future__ import annotations

from pathlib import Path

import pytest

from harmonium.cli.entry import run
from harmonium.runs import Run
from harmonium.runs.checkpoints import read_checkpoint
from tests.cli import grouped
from tests.groups import run_group

TRAIN = (
    "train --data bars-and-stripes --model rbm --n-hidden 6 --objective pcd --epochs 2 --batch-size 10 --threads 1 "
    "--set training.n_chains=9 --set run.evaluate=false --set run.report=false --set run.checkpoint_updates=2"
).split()


def pair(folder: Path, *lines: list[str], restarts: int = 0) -> list[list[tuple[int, str]]]:
    """Run commands on two workers; return what each gives back."""
    folder.mkdir(exist_ok=True)
    return run_group(2, grouped.commands, folder, list(lines), {"TORCHELASTIC_RESTART_COUNT": str(restarts)})


def test_two_workers_leave_one_run_from_which_one_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both, one = tmp_path / "both", tmp_path / "one"
    first, second = pair(tmp_path / "meet", [*TRAIN, "--output", str(both)])
    assert [code for code, _ in first + second] == [0, 0]
    assert f"run: {both}" in first[0][1] and second[0][1] == ""  # one speaks for all
    assert run([*TRAIN, "--output", str(one), "--quiet"]) == 0
    states = [read_checkpoint(Run.open(folder).checkpoints.paths()[-1]) for folder in (both, one)]
    assert states[0][1]["update"] == states[1][1]["update"]
    for name, value in states[1][0].items():
        assert states[0][0][name].shape == value.shape, name  # the chains of both workers
    for mine, theirs in zip(Run.open(both).metrics(), Run.open(one).metrics(), strict=True):
        assert mine["reconstruction"] == pytest.approx(theirs["reconstruction"], abs=0.02)
    assert run(["resume", str(both), "--epochs", "3", "--quiet"]) == 0
    assert Run.open(both).n_epochs == 3
    codes = pair(tmp_path / "meet-again", ["resume", str(one), "--epochs", "3"])
    assert [code for worker in codes for code, _ in worker] == [0, 0]
    for mine, theirs in zip(Run.open(both).metrics(), Run.open(one).metrics(), strict=True):
        assert mine["reconstruction"] == pytest.approx(theirs["reconstruction"], abs=0.02)


def test_workers_that_start_again_go_on_with_their_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    line = [*TRAIN, "--output", str(folder)]
    refused, again = pair(tmp_path / "meet", line, line), pair(tmp_path / "again", line, restarts=1)
    for worker in refused:
        (code, _), (second, text) = worker
        assert code == 0 and second == 2 and "already holds a run" in text  # told by every worker
    assert [worker[0][0] for worker in again] == [0, 0]


def test_workers_with_other_commands_are_refused(tmp_path: Path) -> None:
    for code, text in run_group(2, grouped.unlike, tmp_path, str(tmp_path / "run")):
        assert code == 1 and "Workers must agree on the configuration" in text
    assert not (tmp_path / "run").exists()
