"""Let two processes race for one folder, again and again, and look whether what is left is one whole run.

    python -m benchmarks.races            # 50 pairs
    python -m benchmarks.races 10

Both train with `--overwrite`, each its own number of hidden units. Each stops at the moment before it takes the lock
for the first time, until the other is there too; then both go on at once, so that every pair meets. In every second
pair training lasts longer than a process waits for the lock: the one that comes second is refused. In the others it
waits, and then replaces the run as it was told to. A run is mixed where its model is not that of its settings, or its
checkpoints are of another.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock

from harmonium.cli.entry import run as command
from harmonium.runs import Run, lock, train
from harmonium.runs.checkpoints import read_checkpoint

WEIGHT = "couplings.0.weight"
EPOCHS = (2, 300)
"""Of the pairs in turn: over at once, or longer than the patience of who waits."""


POLL = 0.02
"""Seconds: a lock that is free is had sooner."""


class Behind(FileLock):
    """A lock that is taken for the first time when everybody has come to it, and counts the seconds that it waits."""

    ready = go = -1  # ends of pipes: "I am here", and "all are here" when it is closed
    arrived = False
    waited = 0.0

    def acquire(self, *arguments: Any, **named: Any) -> Any:
        """Take the lock as a FileLock does."""
        if not Behind.arrived:
            Behind.arrived = True
            os.write(Behind.ready, b".")
            os.read(Behind.go, 1)
        begin = time.monotonic()
        try:
            return super().acquire(*arguments, **named)
        finally:
            Behind.waited = max(Behind.waited, time.monotonic() - begin)


def race(folder: Path, sizes: tuple[int, int], epochs: int) -> tuple[list[int], bool]:
    """Let two forks of this process train in one folder at once; return their exit codes, and whether they met."""
    (heard, said), (held, holding) = os.pipe(), os.pipe()
    children = []
    for size in sizes:
        child = os.fork()
        if child == 0:
            os.close(holding)
            lock.FileLock, Behind.ready, Behind.go = Behind, said, held  # type: ignore[misc]
            quick = ("--epochs", str(epochs), "--no-report", "--no-evaluate", "-q", "--threads", "1", "--overwrite")
            with contextlib.redirect_stderr(io.StringIO()):
                code = command(
                    ["train", "--data", "bars-and-stripes", "--n-hidden", str(size), "-o", str(folder), *quick]
                )
            os.write(said, b"w" if Behind.waited >= POLL else b"-")
            os._exit(code)
        children.append(child)
    os.close(said)
    for _ in children:
        os.read(heard, 1)
    os.close(holding)  # both go on
    os.close(held)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    met = b"w" in os.read(heard, 2)
    os.close(heard)
    return codes, met


def is_mixed(folder: Path, epochs: int) -> str:
    """Return what is wrong with the run that is left, or nothing."""
    left = Run.open(folder)
    size = left.config.model.n_hidden
    parameters = left.parameters()
    if parameters[WEIGHT].shape[1] != size:
        return f"the model has {parameters[WEIGHT].shape[1]} hidden units, the settings say {size}"
    for path in left.checkpoints.paths():
        tensors, _ = read_checkpoint(path)
        if tensors[f"learned.model.{WEIGHT}"].shape[1] != size:
            return f"{path.name} is of another run"
    if len(left.metrics()) != epochs:
        return f"{len(left.metrics())} epochs in the metrics"
    train(left)  # goes on from the last checkpoint, and ends where it ended
    return "" if torch.equal(left.parameters()[WEIGHT], parameters[WEIGHT]) else "it goes on differently"


def main() -> None:
    """Run the races and print the count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", nargs="?", type=int, default=50)
    n = parser.parse_args().n
    torch.set_num_threads(1)
    n_mixed = n_met = n_refused = n_wrong = 0
    with tempfile.TemporaryDirectory() as name:
        for i in range(n):
            folder, epochs = Path(name) / str(i), EPOCHS[i % 2]
            codes, waited = race(folder, (3, 5), epochs)
            n_refused += codes.count(2)
            n_met += waited or 2 in codes
            n_wrong += not (set(codes) <= {0, 2} and 0 in codes)
            trouble = is_mixed(folder, epochs)
            n_mixed += bool(trouble)
            print(f"{i + 1:3} exit codes {codes} {'met ' if waited or 2 in codes else ''}{trouble}", flush=True)
    print(
        f"{n} pairs: {n_met} met, {n_mixed} mixed runs, {n_refused} processes refused, "
        f"{n_wrong} pairs with other exit codes"
    )
    sys.exit(1 if n_mixed or n_wrong else 0)


if __name__ == "__main__":
    main()
