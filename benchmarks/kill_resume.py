"""Kill training runs with SIGKILL at random moments, resume them, and compare every bit with a run never killed.

    python -m benchmarks.kill_resume            # 300 kills, over every kind of model
    python -m benchmarks.kill_resume 20 --seed 3

Each kill is a process of the real command line, forked from this one. A resume is exact when the parameters, the whole
training state (optimizer, chains, random states, order of the data) and the metrics are the same bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file

from benchmarks.tiny_runs import CASES, write_cases
from harmonium.cli.entry import run
from harmonium.runs import Run, read_config
from harmonium.runs.checkpoints import read_checkpoint


@dataclass(frozen=True)
class Outcome:
    """What came of a kill: where it hit, and whether the resumed run is the same."""

    case: str
    update: int
    exact: bool
    n_corrupt: int


def start(*arguments: str) -> int:
    """Start the command line in a fork of this process, which has imported all that it needs; return its number."""
    child = os.fork()
    if child == 0:
        with contextlib.redirect_stderr(io.StringIO()) as said:
            code = run([*arguments, "--quiet"])
        if code:
            sys.__stderr__.write(said.getvalue())  # type: ignore[union-attr]
        os._exit(code)
    return child


def ended(child: int, seconds: float = 0.0) -> int | None:
    """Return the exit code of a process that has ended after so many seconds, else None."""
    until = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until:
            return None
        time.sleep(0.001)


def finish(child: int) -> None:
    """Wait for a process that must succeed."""
    _, status = os.waitpid(child, 0)
    if status:
        raise RuntimeError(f"exit code {os.waitstatus_to_exitcode(status)}")


def wait_for(path: Path, child: int) -> bool:
    """Wait until a file appears; return False if the process ends before."""
    while not path.exists():
        if ended(child) is not None:
            return False
        time.sleep(0.001)
    return True


def reference(config: Path, folder: Path) -> float:
    """Train without interruption; return how long the run took once its folder was there."""
    child = start("train", str(config), "--output", str(folder))
    if not wait_for(folder / "config.toml", child):
        raise RuntimeError(f"{config} cannot be trained")
    begin = time.monotonic()
    finish(child)
    return time.monotonic() - begin


def kill(config: Path, folder: Path, after: float) -> bool:
    """Train, kill the process so long after its folder has appeared, and say whether it was still running."""
    child = start("train", str(config), "--output", str(folder))
    if not wait_for(folder / "config.toml", child) or ended(child, after) is not None:
        return False
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def corrupt_files(folder: Path) -> list[str]:
    """Return what is not whole after a kill: a checkpoint, the model, the configuration or the metrics."""
    bad = []
    opened = Run.open(folder)
    for path in opened.checkpoints.paths():
        try:
            read_checkpoint(path)
        except ValueError as error:
            bad.append(str(error))
    if (folder / "model.safetensors").exists():
        load_file(folder / "model.safetensors")
    read_config(folder / "config.toml")
    text = (folder / "metrics.jsonl").read_bytes() if (folder / "metrics.jsonl").exists() else b""
    if text and not text.endswith(b"\n"):
        bad.append("metrics.jsonl ends within a line")
    return bad


def fingerprint(folder: Path) -> dict[str, bytes]:
    """Return the bytes that must be equal."""
    newest = Run.open(folder).checkpoints.paths()[-1]
    files = {
        "model": folder / "model.safetensors",
        "metrics": folder / "metrics.jsonl",
        "state": newest / "state.safetensors",
    }
    return {name: path.read_bytes() for name, path in files.items()} | {"update": newest.name.encode()}


def kills(n: int, seed: int, *, every: int = 3, cases: tuple[str, ...] = tuple(CASES)) -> Iterator[Outcome]:
    """Make `n` kills, the cases in turn, at moments drawn over the whole length of the training."""
    generator = torch.Generator().manual_seed(seed)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        configs = write_cases(root, every)
        lengths = {case: reference(configs[case], root / f"{case}-reference") for case in cases}
        wanted = {case: fingerprint(root / f"{case}-reference") for case in cases}
        done = 0
        while done < n:
            case = cases[done % len(cases)]
            folder = root / f"{case}-{done}"
            moment = torch.rand((), generator=generator).item() * lengths[case]
            if not kill(configs[case], folder, moment):
                lengths[case] *= 0.9  # the machine is faster now
                shutil.rmtree(folder)
                continue
            bad = corrupt_files(folder)
            paths = Run.open(folder).checkpoints.paths()
            update = int(paths[-1].name.removeprefix("update-")) if paths else 0
            finish(start("resume", str(folder)))
            yield Outcome(case, update, fingerprint(folder) == wanted[case], len(bad))
            done += 1


def main() -> None:
    """Make the kills and print the count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", nargs="?", type=int, default=300, help="how many kills")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=3, help="updates between checkpoints")
    arguments = parser.parse_args()
    outcomes = []
    for outcome in kills(arguments.n, arguments.seed, every=arguments.every):
        outcomes.append(outcome)
        print(f"{len(outcomes):4d} {outcome}", flush=True)
    n_exact, n_corrupt = sum(o.exact for o in outcomes), sum(o.n_corrupt for o in outcomes)
    print(f"{len(outcomes)} kills: {n_exact} exact resumes, {n_corrupt} corrupt files")
    sys.exit(0 if n_exact == len(outcomes) and not n_corrupt else 1)


if __name__ == "__main__":
    main()
