"""What an update on sparse rows costs against their density, beside scikit-learn's sparse path.

    python -m benchmarks.sparse_rows                        # a table; with --picture FILE a picture, too

20,000 columns as in a bag of words (column i is on with a probability of about 1/i), 256 hidden units, batches of 128,
2,560 rows as a CSR matrix of float32. Each is run in a process of its own, in turn. Time is CPU time (with
OMP_NUM_THREADS=1 that of one thread, which other work on the machine disturbs least) of an epoch once the first is
over, by update; memory is the growth of the process from just before the fit to its peak.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.neural_network import BernoulliRBM

import harmonium as hm
from benchmarks.cases.memory import status
from harmonium.learning.objectives import sparse_pair
from harmonium.learning.sparse_rows import SparseRows
from harmonium.sklearn import RBMTransformer

N_ROWS, N_COLUMNS, N_HIDDEN, BATCH = 2560, 20_000, 256, 128
DENSITIES = (0.001, 0.003, 0.01, 0.03, 0.1)
EPOCHS = 3


def rows(density: float) -> sp.csr_array:
    """Return 0/1 rows whose columns follow Zipf's law, at this density on average."""
    law = 1 / np.arange(1, N_COLUMNS + 1)
    scale = 1.0
    while np.minimum(0.9, scale * law).mean() < density:
        scale *= 1.02
    generator = np.random.default_rng(0)
    parts = [
        sp.csr_array((generator.random((BATCH, N_COLUMNS)) < np.minimum(0.9, scale * law)).astype(np.float32))
        for _ in range(N_ROWS // BATCH)
    ]
    return sp.vstack(parts, format="csr")


def fit(data: Any, objective: hm.CD | hm.PCD, epochs: int) -> None:
    """Learn by SGD."""
    generator = torch.Generator().manual_seed(0)
    rbm = hm.RBM(hm.Bernoulli(N_COLUMNS), hm.Bernoulli(N_HIDDEN), generator=generator)
    hm.initialize(rbm, data if isinstance(data, torch.Tensor) else SparseRows(data))
    optimizer = torch.optim.SGD(rbm.parameters(), 0.01)
    hm.fit(
        rbm,
        data,
        objective,
        optimizer=optimizer,
        epochs=epochs,
        batch_size=BATCH,
        monitors=[],
        generator=generator,
    )


def fit_dense(X: sp.csr_array, epochs: int) -> None:
    """Learn from the same rows as a dense matrix of bytes, with dense products: the control."""
    sparse_pair.DENSEST = -1.0
    fit(torch.from_numpy(X.toarray().astype(np.uint8)), hm.CD(), epochs)


def estimator(kind: Any) -> Callable[[sp.csr_array, int], None]:
    """Return how an estimator learns, at the same settings."""

    def run(X: sp.csr_array, epochs: int) -> None:
        kind(N_HIDDEN, batch_size=BATCH, n_iter=epochs, learning_rate=0.01, random_state=0).fit(X)

    return run


CONTENDERS: dict[str, Callable[[sp.csr_array, int], None]] = {
    "fit, CD-1": lambda X, epochs: fit(X, hm.CD(), epochs),
    "fit, PCD with 10 chains": lambda X, epochs: fit(X, hm.PCD(n_chains=10), epochs),
    "fit, CD-1, dense rows": fit_dense,
    "RBMTransformer": estimator(RBMTransformer),
    "BernoulliRBM": estimator(BernoulliRBM),
}


def measure(name: str, density: float) -> None:
    """Print the milliseconds of an update and the growth of memory in MiB."""
    warnings.simplefilter("ignore")
    X = rows(density)
    CONTENDERS[name](X[:BATCH, :], 1)  # what is loaded at the first use
    before = status("VmRSS")
    seconds = []
    for epochs in (1, EPOCHS):
        begin = time.process_time()
        CONTENDERS[name](X, epochs)
        seconds.append(time.process_time() - begin)
    print(1000 * (seconds[1] - seconds[0]) / (EPOCHS - 1) / (N_ROWS // BATCH), status("VmHWM") - before)


def main() -> None:
    """Measure all in turn and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    found: dict[tuple[str, float], list[tuple[float, float]]] = {}
    for _ in range(arguments.repeats):
        for density in DENSITIES:
            for name in CONTENDERS:
                call = f"from benchmarks import sparse_rows; sparse_rows.measure({name!r}, {density})"
                done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=True)
                figures = tuple(map(float, done.stdout.split()))
                found.setdefault((name, density), []).append((figures[0], figures[1]))
    threads = torch.get_num_threads()
    print(f"{threads} threads, ms of CPU time an update (MiB at the peak), medians of {arguments.repeats}")
    print("| share of nonzeros | " + " | ".join(CONTENDERS) + " |\n|---" + "|---" * len(CONTENDERS) + "|")
    medians = {key: tuple(statistics.median(x) for x in zip(*values, strict=True)) for key, values in found.items()}
    for density in DENSITIES:
        cells = [f"{medians[name, density][0]:.1f} ({medians[name, density][1]:.0f})" for name in CONTENDERS]
        print(f"| {density:.1%} | " + " | ".join(cells) + " |")
    if arguments.picture is not None:
        draw(medians, arguments.picture)


def draw(medians: dict[tuple[str, float], tuple[float, ...]], file: Path) -> None:
    """Draw time and memory against density."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for axis, i, words in ((axes[0], 0, "milliseconds of CPU time an update"), (axes[1], 1, "MiB at the peak")):
        for name in CONTENDERS:
            axis.loglog(DENSITIES, [medians[name, d][i] for d in DENSITIES], "o-", label=name)
        axis.set_xlabel("share of nonzeros")
        axis.set_ylabel(words)
    axes[0].legend(fontsize=8)
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
