"""An RBM with weights of 16 bits, multiplied as bytes, beside the same one in floats: `python -m benchmarks.rounded R`.

R is the folder of a run. What rounding costs: the change of log Z between its bounds, from chains of both machines that
start at training samples, and that of the likelihood of the test samples. What it gains: Gibbs sampling and annealing
of both, in turn.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

import harmonium as hm
from harmonium.partition import log_z_shift
from harmonium.products import ONEDNN
from harmonium.runs import Run


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def chains(rbm: hm.RBM, start: Tensor, n_steps: int, seed: int) -> Tensor:
    return hm.sample(rbm, len(start), start=start, n_steps=n_steps, generator=generator(seed))


def side_by_side(what: str, work: Callable[[hm.RBM], object], machines: list[hm.RBM], repeats: int) -> None:
    """Print the median seconds of both and of their ratio, one after the other in every repeat."""
    seconds: list[list[float]] = [[], []]
    for machine in machines:
        work(machine)
    for _ in range(repeats):
        for machine, taken in zip(machines, seconds, strict=True):
            started = time.perf_counter()
            work(machine)
            taken.append(time.perf_counter() - started)
    ratio = statistics.median(b / a for a, b in zip(*seconds, strict=True))
    floats, whole = (1000 * statistics.median(s) for s in seconds)
    print(f"{what}: floats {floats:.0f} ms, bytes {whole:.0f} ms, {ratio:.2f} of it", flush=True)


def main() -> None:
    """Print what rounding costs and gains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--chains", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    run = Run.open(options.run)
    rbm = run.trained().model
    train, test = run.rows("train"), run.rows("test")
    if not isinstance(rbm, hm.RBM) or train is None or test is None:
        raise ValueError(f"{options.run} must be the run of an RBM whose data have training and test samples.")
    rounded = rbm.rounded()
    step = rounded.coupling.planes.step  # type: ignore[union-attr]
    print(f"largest weight {rbm.weight.abs().max().item():.3f}, grid of {step:.3g}; floats by oneDNN: {ONEDNN}")
    start = train[: options.chains].float()
    x, y = (chains(machine, start, options.steps, seed) for seed, machine in enumerate((rbm, rounded)))
    shift = log_z_shift(rbm, rounded, x, y)
    precise, other = (copy.deepcopy(machine).double() for machine in (rbm, rounded))
    with torch.no_grad():
        change = torch.cat(
            [precise.free_energy(rows.double()) - other.free_energy(rows.double()) for rows in test.split(1000)]
        )
    mean, spread = change.mean().item(), change.std().item()
    print(f"log Z: {shift.value:+.5f} ± {shift.error:.5f} nats, in [{shift.lower:.5f}, {shift.upper:.5f}]")
    low, high = mean - shift.upper, mean - shift.lower
    print(
        f"test log-likelihood: {mean - shift.value:+.5f} nats, in [{low:.5f}, {high:.5f}]; one sample ± {spread:.4f}",
        flush=True,
    )
    machines = [rbm, rounded]
    for n in (100, 1024):
        side_by_side(
            f"Gibbs, {n} chains, 100 sweeps",
            lambda machine, n=n: hm.sample(machine, n, n_steps=100, generator=generator()),
            machines,
            options.repeats,
        )
    betas = torch.linspace(0, 1, 200)
    side_by_side(
        "AIS, 512 chains, 200 temperatures",
        lambda machine: hm.ais(machine, n_chains=512, betas=betas, generator=generator()),
        machines,
        options.repeats,
    )


if __name__ == "__main__":
    main()
