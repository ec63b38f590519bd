"""log Z as finished runs followed it, and as it was measured at their end.

    python benchmarks/running_likelihood.py RUN …

`LikelihoodTrack` follows log Z from the first epoch to the last; the evaluation of a run measures it afresh, from its
parameters alone. Where that is trusted, it says how far the followed value is off, and whether its error covers. The
runs of the recipe, three times half an hour, are made by

    for S in 0 1 2; do harmonium train examples/binarized_mnist.toml --threads 1 --seed $S --output runs/bm-$S; done

`--exact N` follows N small trainings instead, whose log Z is counted after every epoch: of rows around five patterns,
and, the hard case, of rows around two far ones at a rate at which the model swings from one to the other.
"""

from __future__ import annotations

import argparse
import math
import statistics
import warnings
from pathlib import Path

import torch

import harmonium as hm
from harmonium.evaluation.likelihood_track import LikelihoodTrack
from harmonium.runs import Run

N_VISIBLE, N_HIDDEN, N_ROWS, EPOCHS, BATCH, FLIPPED = 12, 8, 400, 25, 20, 0.04
CASES = {"five patterns, rate 0.03": (5, 0.03), "two far ones, rate 0.1": (2, 0.1)}


class Counted(hm.learning.Callback):
    """log Z after every epoch, all states counted."""

    def __init__(self) -> None:
        self.log_z: list[float] = []

    def on_epoch(self, training: hm.learning.Training, record: hm.learning.Record) -> None:
        """Count."""
        self.log_z.append(float(hm.exact_log_z(training.model).value))


def followed_and_counted(n_patterns: int, rate: float, seed: int) -> list[tuple[float, float]]:
    """Return by how much followed values are off after each epoch, and their stated errors."""
    generator = torch.Generator().manual_seed(seed)
    patterns = (torch.rand(n_patterns, N_VISIBLE, generator=generator) < 0.5).double()
    if n_patterns == 2:
        patterns[1] = 1 - patterns[0]
    x = patterns[torch.randint(0, n_patterns, (N_ROWS,), generator=generator)]
    x = torch.where(torch.rand(x.shape, generator=generator) < FLIPPED, 1 - x, x)
    rbm = hm.RBM(hm.Bernoulli(N_VISIBLE), hm.Bernoulli(N_HIDDEN), generator=generator).double()
    hm.initialize(rbm, x)
    counted, optimizer = Counted(), torch.optim.SGD(rbm.parameters(), rate)
    chosen = {"epochs": EPOCHS, "batch_size": BATCH, "monitors": [LikelihoodTrack(seed=seed)], "callbacks": [counted]}
    history = hm.fit(rbm, x, hm.PCD(n_chains=20), optimizer=optimizer, generator=generator, **chosen)
    off = [value - exact for value, exact in zip(history["log_z"], counted.log_z, strict=True)]
    return list(zip(off, history["log_z_error"], strict=True))


def coverage(n: int) -> None:
    """Print how often stated errors cover, at the end of small trainings and over all of their epochs."""
    warnings.simplefilter("ignore")
    print(
        "| trainings | | off at the end, median, most | stated, median | within 1, 3 errors at the end | 3, any epoch |"
    )
    print("|---|---|---|---|---|---|")
    for name, (n_patterns, rate) in CASES.items():
        runs = [followed_and_counted(n_patterns, rate, seed) for seed in range(n)]
        ends = [run[-1] for run in runs]
        sizes = [abs(off) for off, _ in ends]
        within = [sum(abs(off) <= k * error for off, error in ends) for k in (1, 3)]
        always = sum(all(abs(off) <= 3 * error for off, error in run) for run in runs)
        stated = statistics.median(error for _, error in ends)
        off = f"{statistics.median(sizes):.3f}, {max(sizes):.2f}"
        print(f"| {n} | {name} | {off} | {stated:.3f} | {within[0]}, {within[1]} | {always} |", flush=True)


def line(folder: Path) -> str:
    """Return the row of a run: both values, and their difference in units of the error of both."""
    run = Run.open(folder)
    last, measured = run.metrics()[-1], (run.evaluation() or {})["log_z"]
    followed, error = last["log_z"], last["log_z_error"]
    off, both = followed - measured["value"], math.hypot(error, measured["error"])
    trusted = "trusted" if measured["trusted"] else f"**not trusted**: {measured['note']}"
    return (
        f"| {folder.name} | {last['epoch']} | {followed:.2f} ± {error:.2f} | {measured['text']}, {trusted} | "
        f"{off:+.2f}, {abs(off) / both:.2f} errors |"
    )


def main() -> None:
    """Print a table of the runs, or of small trainings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN")
    parser.add_argument("--exact", type=int, metavar="N", help="follow N small trainings of each of two cases instead")
    options = parser.parse_args()
    if options.exact:
        coverage(options.exact)
        return
    print("| run | epochs | followed | measured at the end | off |\n|---|---|---|---|---|")
    for folder in options.runs:
        print(line(folder))


if __name__ == "__main__":
    main()
