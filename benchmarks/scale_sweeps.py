"""Sweeps of two machines that share a folder: one is killed at random moments and comes back; is a trial lost?

    python -m benchmarks.scale_sweeps --n 10

Each machine is a process group that runs `harmonium sweep`, and a kill is a SIGKILL of all of it. Runs of the grid end
exactly if they hold the bytes of a sweep never killed; the search must have all of its trials, each once and complete.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from pathlib import Path

import torch

from benchmarks.kill_resume import fingerprint
from benchmarks.scale_faults import SOURCE
from harmonium.cli.searching import Search

CONFIG = """
[data]
name = "ising"
options.n_samples = 200
[training]
objective = "pcd"
n_chains = 16
epochs = 20
batch_size = 10
[run]
threads = 1
report = false
checkpoint_updates = 20
[sweep]
"""
GRID = CONFIG + '"model.n_hidden" = [2, 3, 4, 5]\n'
SEARCH = f"""{CONFIG}
"model.n_hidden" = {{ low = 2, high = 8 }}
"training.learning_rate" = {{ low = 0.001, high = 0.1, log = true }}
"""
N_TRIALS = 4


def sweep(config: Path, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    """Start a sweep, as a machine of its own."""
    line = [sys.executable, "-m", "harmonium", "sweep", str(config), "-q", "--output", str(folder), *more]
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)


def disturbed(config: Path, folder: Path, n: int, generator: torch.Generator, *more: str) -> int:
    """Let two machines sweep until both are done, kill one of them up to n times, and return how often."""
    pair, n_kills = [sweep(config, folder, *more) for _ in range(2)], 0
    while n_kills < n:
        time.sleep(2 + 8 * torch.rand((), generator=generator).item())
        if all(machine.poll() is not None for machine in pair):
            break
        which = int(torch.randint(2, (), generator=generator))
        if pair[which].poll() is None:
            os.killpg(pair[which].pid, signal.SIGKILL)
            n_kills += 1
            pair[which].wait()
            pair[which] = sweep(config, folder, *more)
    codes = [machine.wait(900) for machine in pair]
    if any(codes):
        raise RuntimeError(f"A sweep that nobody killed ended with {codes}.")
    last = sweep(config, folder, *more)  # whatever the last one that was killed had held
    if last.wait(900):
        raise RuntimeError("The sweep that was to find all done failed.")
    return n_kills


def main() -> None:
    """Disturb a grid, a search in a journal, and one in a database."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=10, help="how many kills of each, at most")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    generator = torch.Generator().manual_seed(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "grid.toml").write_text(GRID)
        (root / "search.toml").write_text(SEARCH)
        if sweep(root / "grid.toml", root / "calm").wait(900):
            raise RuntimeError("The sweep that is never killed failed.")
        n_kills = disturbed(root / "grid.toml", root / "grid", arguments.n, generator)
        runs = sorted(path.parent.name for path in (root / "calm").glob("*/metrics.jsonl"))
        exact = [fingerprint(root / "grid" / run) == fingerprint(root / "calm" / run) for run in runs]
        print(
            f"grid, {n_kills} kills: {len(runs)} runs, {sum(exact)} with the bytes of a sweep never killed", flush=True
        )
        for what, url in (("a journal", ""), ("a database", f"sqlite:///{root}/tried.db")):
            folder = root / what
            more = ["--optuna", str(N_TRIALS), *(["--storage", url] if url else [])]
            n_kills = disturbed(root / "search.toml", folder, arguments.n, generator, *more)
            done = len(list(folder.glob("trial-*/model.safetensors")))
            states = _states(root / "search.toml", folder, url)
            print(f"search in {what}, {n_kills} kills: {done} runs are done; of the trials {states}", flush=True)


def _states(config: Path, folder: Path, url: str) -> dict[str, int]:
    """Return how many trials of a search are in each state."""
    settings = tomllib.loads(config.read_text())
    search = Search(settings, settings.pop("sweep"), folder, N_TRIALS, None, url or None)
    return dict(Counter(trial.state.name for trial in search.study.get_trials()))


if __name__ == "__main__":
    main()
