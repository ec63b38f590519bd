"""Kill training runs with SIGKILL at random moments, resume them, and compare every bit with a run never killed.

    python benchmarks/kill_resume.py            # 100 kills
    python benchmarks/kill_resume.py 20 --seed 3

Each kill is a real process of the real command line. A resume is exact when the parameters, the whole training state
(optimizer, chains, random states, order of the data) and the metrics are the same bytes.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file

from harmonium.runs import Run, read_config
from harmonium.runs.checkpoints import read_checkpoint

SOURCE = Path(__file__).resolve().parent.parent / "src"
COMMAND = [sys.executable, "-m", "harmonium.cli"]

COMMON = """
[run]
threads = 1
evaluate = false
report = false
checkpoint_updates = {every}
"""

CASES = {
    "pcd": """
[data]
name = "bars-and-stripes"
[model]
n_hidden = 12
[training]
objective = "pcd"
n_chains = 16
n_steps = 2
epochs = 60
batch_size = 10
momentum = 0.5
weight_decay = 0.001
centering = true
sparsity_rate = 0.01
norm_limit = 5.0
average = 0.9
schedule = "cosine"
""",
    "gaussian": """
[data]
name = "moons"
options = { n_samples = 400 }
[model]
kind = "gaussian-rbm"
n_hidden = 6
[training]
n_chains = 32
epochs = 40
batch_size = 64
optimizer = "adam"
schedule = "linear"
clip = 5.0
track_likelihood = true
""",
    "tempered": """
[data]
name = "bars-and-stripes"
options = { size = 3 }
[model]
n_hidden = 8
hidden = "spin"
[training]
objective = "tempered-pcd"
n_chains = 8
betas = [0.0, 0.5, 1.0]
epochs = 60
batch_size = 4
""",
    "resample": """
[data]
name = "digits"
binarize = "resample"
[model]
n_hidden = 16
[training]
objective = "cd"
epochs = 6
batch_size = 128
average = 0.99
""",
    "missing": """
[data]
name = "{folder}/table.csv"
[model]
kind = "rbm"
n_hidden = 6
[training]
n_chains = 16
epochs = 40
batch_size = 32
optimizer = "adam"
learning_rate = 0.01
""",
    "jem": """
[data]
name = "moons"
options = { n_samples = 400 }
[model]
kind = "jem"
options = { hidden = [16] }
[training]
n_steps = 3
n_chains = 100
epochs = 40
batch_size = 64
optimizer = "sgd"
learning_rate = 20.0
momentum = 0.5
average = 0.9
[jem]
class_chains = true
renewal = 0.1
n_tries = 30
""",
}
"""Tiny runs that carry everything a run can carry."""


@dataclass(frozen=True)
class Outcome:
    """What came of a kill: where it hit, and whether the resumed run is the same."""

    case: str
    update: int
    exact: bool
    n_corrupt: int


def write_cases(folder: Path, every: int) -> dict[str, Path]:
    """Write the configurations of the cases and the table with missing cells."""
    with (folder / "table.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["switch", "color", "size"])
        for i in range(160):
            row = [i % 2, ("red", "green", "blue")[i % 3], f"{(i * 37 % 100) / 10 + 0.05:.2f}"]
            row[i % 3] = "" if i % 5 == 0 else row[i % 3]
            writer.writerow(row)
    paths = {}
    for name, text in CASES.items():
        paths[name] = folder / f"{name}.toml"
        paths[name].write_text(text.replace("{folder}", str(folder)) + COMMON.replace("{every}", str(every)))
    return paths


def start(*arguments: str) -> subprocess.Popen[bytes]:
    """Start the command line."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([*COMMAND, *arguments, "--quiet"], env=environment, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process that must succeed."""
    _, errors = process.communicate()
    if process.returncode:
        raise RuntimeError(f"exit code {process.returncode}: {errors.decode()}")


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> float:
    """Return how long it took until a file appeared or the process ended."""
    begin = time.monotonic()
    while not path.exists() and process.poll() is None:
        try:
            process.wait(0.002)
        except subprocess.TimeoutExpired:
            continue
    return time.monotonic() - begin


def reference(config: Path, folder: Path) -> float:
    """Train without interruption; return how long the run took once its folder was there."""
    process = start("train", str(config), "--output", str(folder))
    wait_for(folder / "config.toml", process)
    begin = time.monotonic()
    finish(process)
    return time.monotonic() - begin


def kill(config: Path, folder: Path, after: float) -> bool:
    """Train, kill the process so long after its folder has appeared, and say whether it was still running."""
    process = start("train", str(config), "--output", str(folder))
    wait_for(folder / "config.toml", process)
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return True
    process.communicate()
    return False


def corrupt_files(folder: Path) -> list[str]:
    """Return what is not whole after a kill: a checkpoint, the model, the configuration or the metrics."""
    bad = []
    run = Run.open(folder)
    for path in run.checkpoints.paths():
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
                subprocess.run(["rm", "-r", str(folder)], check=True)
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
    parser.add_argument("n", nargs="?", type=int, default=100, help="how many kills")
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
