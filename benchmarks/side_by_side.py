"""`python -m benchmarks.side_by_side REVISION`: is this checkout slower than an earlier revision?

Both run the same cases in a process of their own, one epoch in turn, the order drawn anew in every round, so that what
slows the machine down slows both. The clock is the processor time of one thread, which other programs hardly touch.
The figure is the median of the ratios of all rounds, new over old; its range is where the median lies in 95 of 100
resampled sets of rounds.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKER = """
import sys, time, gc
from benchmarks import cases
import torch
torch.set_num_threads(1)
case = next(c for c in cases.ALL if c.name == sys.argv[1])
def ours(quick):
    return next(c for c in case.build(quick) if c.name == "harmonium")
contenders = [ours(True), ours(False)]
for line in sys.stdin:
    contender = contenders[int(line)]
    if contender.prepare is not None:
        contender.prepare()
    gc.collect()
    started = time.process_time()
    contender.run()
    print(time.process_time() - started, flush=True)
"""
TIMED = ["cd1", "small", "gaussian", "categorical", "multinary", "gibbs", "ais", "convolution", "langevin"]


class Worker:
    """A process with the code of one tree that runs a case when it is asked to."""

    def __init__(self, tree: Path, case: str) -> None:
        paths = os.pathsep.join(map(str, (tree, tree / "src")))
        environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", WORKER, case]
        self.process = subprocess.Popen(
            command, cwd=tree, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def seconds(self, *, quick: bool = False) -> float:
        """Run the case once and return how long it took."""
        stdin, stdout = self.process.stdin, self.process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("The worker has no pipes.")
        stdin.write("0\n" if quick else "1\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise SystemExit(f"The worker ended with code {self.process.wait()}; its message stands above.")
        return float(line)

    def stop(self) -> None:
        """End the process."""
        self.process.communicate()


def unpack(revision: str, folder: Path) -> Path:
    """Lay the files of a revision out in a folder, and compile its loops there."""
    packed = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as tar:
        tar.extractall(folder, filter="data")
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=folder, check=True)
    return folder


def compare(trees: tuple[Path, Path], case: str, rounds: int) -> list[tuple[float, float]]:
    """Return the seconds of both trees in every round."""
    workers = [Worker(tree, case) for tree in trees]
    for worker in workers:
        worker.seconds(quick=True)
    draw = random.Random(0)
    times = []
    for _ in range(rounds):
        order = draw.sample((0, 1), 2)
        taken = {i: workers[i].seconds() for i in order}
        times.append((taken[0], taken[1]))
    for worker in workers:
        worker.stop()
    return times


def summary(times: list[tuple[float, float]]) -> tuple[float, float, float, float]:
    """Return the median of new over old with the ends of its range, and fastest over fastest.

    >>> summary([(1.0, 1.1)] * 5)
    (1.1, 1.1, 1.1, 1.1)
    """
    ratios = [new / old for old, new in times]
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return statistics.median(ratios), medians[50], medians[1949], min(t[1] for t in times) / min(t[0] for t in times)


def main() -> None:
    """Compare case by case and print a line each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.side_by_side", description=__doc__)
    parser.add_argument("revision", help="a commit, a tag or a branch to compare with")
    parser.add_argument("--only", action="append", metavar="CASE", help=f"one of {', '.join(TIMED)} (may be repeated)")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        old = unpack(options.revision, Path(folder))
        print(f"this checkout over {options.revision}, {options.rounds} rounds: median [95 %], fastest over fastest")
        for case in options.only or TIMED:
            times = compare((old, ROOT), case, options.rounds)
            middle, low, high, fastest = summary(times)
            print(f"{case:12} {middle:.3f} [{low:.3f}, {high:.3f}]  {fastest:.3f}", flush=True)


if __name__ == "__main__":
    main()
