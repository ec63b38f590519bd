"""Contrastive divergence in products of bytes beside floats: `python -m benchmarks.rounded_learning --threads 2`.

What it gains: epochs of a 784×500 RBM, both in turn. What it costs: the exact test likelihood of small digits that both
learned from the same draws.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from torch import Tensor

import harmonium as hm
from harmonium.data import load
from harmonium.products import ONEDNN


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def seconds(x: Tensor, batch_size: int, rounded: bool) -> float:
    """Return what an epoch takes: by the clock, or the processor time of a single thread."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    rbm = hm.RBM(hm.Bernoulli(784), hm.Bernoulli(500), generator=generator())
    optimizer = torch.optim.SGD(rbm.parameters(), 0.05, fused=True)
    start = clock()
    hm.fit(rbm, x, hm.CD(rounded=rounded), optimizer=optimizer, epochs=1, batch_size=batch_size, generator=generator(1))
    return clock() - start


def print_epochs(n_rows: int, repeats: int) -> None:
    """Print the medians of both and of their ratio, after an epoch of each that is not counted."""
    x = (torch.rand(n_rows, 784, generator=generator()) < 0.13).to(torch.uint8)
    for batch_size in (128, 512):
        taken = [[seconds(x, batch_size, rounded) for rounded in (False, True)] for _ in range(repeats + 1)][1:]
        ratios = sorted(b / a for a, b in taken)
        floats, whole = (1000 * statistics.median(column) for column in zip(*taken, strict=True))
        print(
            f"{torch.get_num_threads()} threads, batch {batch_size}, {n_rows:,} rows: floats {floats:.0f} ms, bytes "
            f"{whole:.0f} ms, {statistics.median(ratios):.2f} of it [{ratios[0]:.2f}, {ratios[-1]:.2f}]",
            flush=True,
        )


@torch.no_grad()
def nats(rbm: hm.RBM, x: Tensor) -> float:
    """Return the exact mean log-likelihood."""
    return -rbm.free_energy(x).mean().item() - hm.exact_log_z(rbm).value


def print_likelihoods(n_seeds: int, epochs: int) -> None:
    """Print what both learn of the 8×8 digits."""
    data = load("digits", binarize="threshold")
    x, test = data.train.flatten(1), data.test.flatten(1).float()
    for seed in range(n_seeds):
        found = []
        for rounded in (False, True):
            rbm = hm.RBM(hm.Bernoulli(64), hm.Bernoulli(16), generator=generator(seed))
            hm.initialize(rbm, x.float())
            optimizer = torch.optim.SGD(rbm.parameters(), 0.05)
            objective = hm.CD(rounded=rounded)
            hm.fit(rbm, x, objective, optimizer=optimizer, epochs=epochs, batch_size=20, generator=generator(seed))
            found.append(nats(rbm, test))
        print(f"digits, seed {seed}: floats {found[0]:.4f} nats, bytes {found[1]:.4f}, {found[1] - found[0]:+.4f}")


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=60)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"floats by oneDNN: {ONEDNN}")
    print_epochs(options.rows, options.repeats)
    print_likelihoods(options.seeds, options.epochs)


if __name__ == "__main__":
    main()
