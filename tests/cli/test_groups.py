"""`torchrun -m harmonium train`: one run of several workers, and checkpoints that any number of them goes on from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.tiny_runs import write_cases
from harmonium.cli.entry import run
from harmonium.runs import Run, evaluate
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


def test_two_workers_share_the_evaluation(tmp_path: Path) -> None:
    folder, annealed = (
        tmp_path / "run",
        "--set run.evaluate=true --set run.log_z=sandwich --set run.ais_betas=30".split(),
    )
    codes = pair(tmp_path / "meet", [*TRAIN, *annealed, "--set", "run.ais_chains=33", "--output", str(folder)])
    assert [code for worker in codes for code, _ in worker] == [0, 0]
    found = Run.open(folder).evaluation()
    alone, other = evaluate(Run.open(folder)), evaluate(Run.open(folder), n_chains=34)
    assert found is not None and found["log_z"]["kind"] == alone["log_z"]["kind"] == "sandwich"
    for key in ("value", "error", "lower", "upper"):
        assert found["log_z"][key] == pytest.approx(alone["log_z"][key], abs=1e-4)
        assert found["train"][key] == pytest.approx(alone["train"][key], abs=1e-4)
    assert found["log_z"]["error"] != pytest.approx(other["log_z"]["error"], abs=1e-4)  # the control: other chains


def parameters(folder: Path) -> torch.Tensor:
    """Return what a run learned, in one row."""
    tensors, _ = read_checkpoint(Run.open(folder).checkpoints.paths()[-1])
    learned = [value.flatten() for name, value in sorted(tensors.items()) if name.startswith("learned.model.")]
    return torch.cat(learned)


def test_a_checkpoint_of_four_workers_goes_on_with_any_number(tmp_path: Path) -> None:
    four = tmp_path / "four"
    assert run_group(4, grouped.commands, tmp_path, [[*TRAIN, "--output", str(four)]], {})[0][0][0] == 0
    ends = {}
    for n in (1, 2, 3, 4):
        folder = tmp_path / f"by-{n}"
        shutil.copytree(four, folder)
        (tmp_path / f"meet-{n}").mkdir()
        line = ["resume", str(folder), "--epochs", "4", "--quiet"]
        told = run_group(n, grouped.commands, tmp_path / f"meet-{n}", [line], {})
        assert [code for worker in told for code, _ in worker] == [0] * n
        ends[n] = parameters(folder)
    assert not torch.allclose(ends[1], parameters(four), atol=1e-3)  # the control: it did go on
    for n in (2, 3, 4):
        torch.testing.assert_close(ends[n], ends[1], rtol=0, atol=1e-5)


UNLIKE = {"boltzmann": 0.02}
"""How far the kinds may end apart beside rounding: Adam takes as large a step where a gradient is rounding alone."""


def test_every_kind_of_model_is_trained_by_two_workers_as_by_one(tmp_path: Path) -> None:
    cases = write_cases(tmp_path, every=0)
    fewer = {"hopfield": ["--batch-size", "4"]}  # two rows cannot be shared by two
    lines = {name: ["train", str(path), "--quiet", *fewer.get(name, [])] for name, path in cases.items()}
    both = [[*line, "--output", str(tmp_path / "both" / name)] for name, line in lines.items()]
    for worker in pair(tmp_path / "meet", *both):
        assert [name for name, (code, _) in zip(lines, worker, strict=True) if code] == []
    for name, line in lines.items():
        assert run([*line, "--output", str(tmp_path / "one" / name)]) == 0, name
        found, expected = parameters(tmp_path / "both" / name), parameters(tmp_path / "one" / name)
        torch.testing.assert_close(found, expected, rtol=0, atol=UNLIKE.get(name, 1e-4), msg=name)


def test_workers_that_start_again_go_on_with_their_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    line = [*TRAIN, "--output", str(folder)]
    refused, again = pair(tmp_path / "meet", line, line), pair(tmp_path / "again", line, restarts=1)
    for worker in refused:
        (code, _), (second, text) = worker
        assert code == 0 and second == 2 and "already holds a run" in text  # told by every worker
    assert [worker[0][0] for worker in again] == [0, 0]
    (tmp_path / "apart").mkdir()
    apart = run_group(2, grouped.counted_apart, tmp_path / "apart", line)  # as agents of two hosts do
    assert [code for code, _ in apart] == [0, 0]


def test_workers_with_other_commands_are_refused(tmp_path: Path) -> None:
    for code, text in run_group(2, grouped.unlike, tmp_path, str(tmp_path / "run")):
        assert code == 1 and "Workers must agree on the configuration" in text
    assert not (tmp_path / "run").exists()


LEAVES = """
import os, torch
from pathlib import Path
from harmonium import workers

with workers.joined():
    torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], 0.1)  # imports what would keep the group
    total = workers.add_up(torch.ones(1)).item()
names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
Path(f"{os.environ['FOLDER']}/{os.environ['RANK']}").write_text(f"{total} {names}")
"""


def test_no_thread_of_a_group_is_left(tmp_path: Path) -> None:
    """One that is would now and then end the process with SIGABRT, once it is done."""
    if not Path("/proc/self/task").is_dir():
        pytest.skip("this system does not list the threads of a process")
    (tmp_path / "leaves.py").write_text(LEAVES)
    line = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = os.environ | {"FOLDER": str(tmp_path), "OMP_NUM_THREADS": "1"}
    subprocess.run([*line, str(tmp_path / "leaves.py")], env=environment, check=True, capture_output=True)
    for rank in range(2):
        said = (tmp_path / str(rank)).read_text()
        assert said.startswith("2.0 [") and "gloo" not in said


def test_the_checkpoint_of_another_run_is_refused_by_all(tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    for folder, n_hidden in ((own, "6"), (other, "5")):
        assert run([*TRAIN, "--n-hidden", n_hidden, "--output", str(folder), "--quiet"]) == 0
    shutil.rmtree(own / "checkpoints")
    shutil.copytree(other / "checkpoints", own / "checkpoints")
    for worker in pair(tmp_path / "meet", ["resume", str(own), "--epochs", "3"]):
        code, text = worker[0]
        assert code != 0 and "None of the" in text and "checkpoints" in text
