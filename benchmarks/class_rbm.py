"""The RBM with a label on MNIST: hybrid learning of all labels, and of a few with the other images unlabeled.

The weight of L_gen, the rate, and whether gray values are kept or drawn as 0 and 1 anew each time, are chosen on the
last 10,000 training images with 500 hidden units and 8 epochs (seed 0). Then all 60,000 are learned by `--n-hidden`
units, and 1,000 labels alone and with the 59,000 other images, by 500. Gray values are classified in every case.

    python benchmarks/class_rbm.py --seeds 3
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from typing import Any

import torch
from torch import Tensor

import harmonium as hm
from harmonium.data import load
from harmonium.data.known_labels import known_labels
from harmonium.draws import draw_bernoulli
from harmonium.learning.objectives import Hybrid

N_LABELS = 1000


def drawn(x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Return 0 and 1 with the gray values as probabilities."""
    return draw_bernoulli(x, generator=generator)


def trained(
    x: Tensor,
    y: Tensor,
    *,
    n_hidden: int,
    weight: float,
    rate: float,
    how: str,
    epochs: int,
    seed: int,
    batch_size: int = 128,
) -> hm.ClassRBM:
    """Return a machine with the average of its parameters, learned at a rate that falls to zero."""
    generator = torch.Generator().manual_seed(seed)
    machine = hm.ClassRBM(hm.Bernoulli(784), hm.Bernoulli(n_hidden), 10, generator=generator)
    hm.initialize(machine, {"visible": x[:10_000]})
    optimizer = torch.optim.SGD(machine.parameters(), rate, momentum=0.9, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / epochs)
    average = hm.ParameterAverage(0.999)
    hm.fit(
        machine,
        (x, y),
        Hybrid(weight),
        optimizer=optimizer,
        schedule=schedule,
        epochs=epochs,
        batch_size=batch_size,
        transform=drawn if how == "drawn" else None,
        transforms=[average],
        monitors=[],
        generator=generator,
    )
    average.swap(machine)
    return machine


def error(machine: hm.ClassRBM, x: Tensor, y: Tensor) -> float:
    """Return the share of samples that are taken for another class, in %."""
    taken = torch.cat([machine.classify(rows) for rows in x.split(2000)])
    return 100 * (taken != y).double().mean().item()


def say(what: str, errors: list[float], since: float) -> None:
    """Print the mean and the spread of some errors."""
    spread = f" ± {statistics.stdev(errors):.2f}" if len(errors) > 1 else ""
    listed = ", ".join(f"{value:.2f}" for value in errors)
    print(
        f"{what}: {statistics.mean(errors):.2f}{spread} % ({listed}); {time.process_time() - since:.0f} s", flush=True
    )


def main() -> None:
    """Choose on validation data, then print test errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--n-hidden", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=15)
    options = parser.parse_args()
    data = load("mnist", n_valid=0)
    x, y = data.train.flatten(1).float() / 255, data.train_labels
    test, test_y = data.test.flatten(1).float() / 255, data.test_labels
    tried = {}
    for weight, rate, how in itertools.product((0.01, 0.1), (0.2, 0.5), ("gray", "drawn")):
        since = time.process_time()
        settings: dict[str, Any] = {"weight": weight, "rate": rate, "how": how}
        machine = trained(x[:50_000], y[:50_000], n_hidden=500, epochs=8, seed=0, **settings)
        wrong = error(machine, x[50_000:], y[50_000:])
        tried[wrong] = settings
        say(f"validation, {settings}", [wrong], since)
    best = tried[min(tried)]
    since, errors = time.process_time(), []
    for seed in range(options.seeds):
        machine = trained(x, y, n_hidden=options.n_hidden, epochs=options.epochs, seed=seed, **best)
        errors.append(error(machine, test, test_y))
        say(f"test, all labels, {options.n_hidden} hidden units, {best}", errors, since)
    few: dict[str, list[float]] = {"alone": [], "with the others": []}
    for seed in range(options.seeds):
        rows = known_labels(y, N_LABELS, generator=torch.Generator().manual_seed(100 + seed))
        some = torch.full_like(y, -1).scatter(0, rows, y[rows])
        since = time.process_time()
        alone = trained(x[rows], y[rows], n_hidden=500, epochs=250, seed=seed, batch_size=50, **best)
        few["alone"].append(error(alone, test, test_y))
        say(f"test, {N_LABELS:,} labels alone", few["alone"], since)
        since = time.process_time()
        both = trained(x, some, n_hidden=500, epochs=12, seed=seed, **best)
        few["with the others"].append(error(both, test, test_y))
        say(f"test, {N_LABELS:,} labels with the other images", few["with the others"], since)


if __name__ == "__main__":
    main()
