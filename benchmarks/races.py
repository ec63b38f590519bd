"""Let two processes race for one folder, again and again, and look whether what is left is one whole run.

    python -m benchmarks.races            # 50 pairs
    python -m benchmarks.races 10

Both train with `--overwrite`, each its own number of hidden units, and begin at the same moment. One may be refused. A
run is mixed where its model is not that of its settings, or its checkpoints are of another.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path

import torch

from harmonium.cli.entry import run as command
from harmonium.runs import Run, train
from harmonium.runs.checkpoints import read_checkpoint

WEIGHT = "couplings.0.weight"


def race(folder: Path, sizes: tuple[int, int]) -> list[int]:
    """Let two forks of this process train in one folder at once; return their exit codes."""
    reading, writing = os.pipe()
    children = []
    for size in sizes:
        child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(reading, 1)  # both wait for the pipe to be closed
            quick = ("--epochs", "2", "--no-report", "--no-evaluate", "-q", "--threads", "1", "--overwrite")
            with contextlib.redirect_stderr(io.StringIO()):
                code = command(
                    ["train", "--data", "bars-and-stripes", "--n-hidden", str(size), "-o", str(folder), *quick]
                )
            os._exit(code)
        children.append(child)
    os.close(reading)
    os.close(writing)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def is_mixed(folder: Path) -> str:
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
    if len(left.metrics()) != 2:
        return f"{len(left.metrics())} epochs in the metrics"
    train(left)  # goes on from the last checkpoint, and ends where it ended
    return "" if torch.equal(left.parameters()[WEIGHT], parameters[WEIGHT]) else "it goes on differently"


def main() -> None:
    """Run the races and print the count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", nargs="?", type=int, default=50)
    n = parser.parse_args().n
    torch.set_num_threads(1)
    n_mixed = n_refused = n_wrong = 0
    with tempfile.TemporaryDirectory() as name:
        for i in range(n):
            codes = race(Path(name) / str(i), (3, 5))
            n_refused += codes.count(2)
            n_wrong += not (set(codes) <= {0, 2} and 0 in codes)
            trouble = is_mixed(Path(name) / str(i))
            n_mixed += bool(trouble)
            print(f"{i + 1:3} exit codes {codes} {trouble}", flush=True)
    print(f"{n} pairs: {n_mixed} mixed runs, {n_refused} processes refused, {n_wrong} pairs with other exit codes")
    sys.exit(1 if n_mixed or n_wrong else 0)


if __name__ == "__main__":
    main()
