"""Does a stack of machines help a classifier? The same network from a pretrained stack and from random weights.

A DBN 784-500-1000 learns all 60,000 training images of MNIST without their labels, layer by layer. Then the network
that it becomes and the same network with random weights learn from some labels, by the same grid of settings, each with
the one that is best for it on the last 10,000 training images (seed 0), whose labels are not learned from meanwhile.

    python benchmarks/pretraining.py --labels 100 1000 10000 60000 --seeds 3
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from pathlib import Path

import torch
from torch import Tensor, nn

import harmonium as hm
from harmonium.data import load
from harmonium.data.known_labels import known_labels
from harmonium.learning.greedy import fit_greedy
from harmonium.learning.objectives import CrossEntropy
from harmonium.models.class_log_probabilities import class_log_probabilities
from harmonium.networks.layers import redraw

N_UPDATES = {100: 300, 1000: 1000, 10_000: 2500, 60_000: 7000}
GRID = {"dropout": (0.0, 0.5), "rate": (3e-4, 1e-3)}
GRID_OF_MANY = {"dropout": (0.3, 0.5), "rate": (1e-3,)}


def pretrained(x: Tensor, seed: int, epochs: int) -> hm.DBN:
    """Return the stack, trained layer by layer."""
    generator = torch.Generator().manual_seed(seed)
    dbn = hm.DBN.from_spec("dense 500, dense 1000", shape=(784,), generator=generator)

    def sgd(parameters: object) -> torch.optim.SGD:
        return torch.optim.SGD(parameters, 0.05, momentum=0.5, fused=True)  # type: ignore[arg-type]

    transforms = [hm.WeightDecay(2e-4)]
    fit_greedy(dbn, x, hm.CD(), optimizer=sgd, epochs=epochs, generator=generator, transforms=transforms)
    return dbn


def tuned(
    network: nn.Sequential, x: Tensor, y: Tensor, *, n_updates: int, dropout: float, rate: float, seed: int
) -> nn.Sequential:
    """Tune a network by backpropagation; return it with the average of its parameters."""
    batch_size = min(128, len(x))
    epochs = max(1, round(n_updates * batch_size / len(x)))
    optimizer = torch.optim.Adam(network.parameters(), rate, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / epochs)
    average = hm.ParameterAverage(0.99 if n_updates < 3000 else 0.998)
    hm.fit(
        network,
        (x, y),
        CrossEntropy(dropout=dropout, input_dropout=0.2 * (dropout > 0)),
        optimizer=optimizer,
        schedule=schedule,
        epochs=epochs,
        batch_size=batch_size,
        transforms=[average],
        monitors=[],
        generator=torch.Generator().manual_seed(seed),
    )
    average.swap(network)
    return network


def error(network: nn.Sequential, x: Tensor, y: Tensor) -> float:
    """Return the share of samples that are taken for another class, in %."""
    return 100 * (class_log_probabilities(network, x).argmax(-1) != y).double().mean().item()


def main() -> None:
    """Pretrain, choose on validation data, tune on every number of labels, and print errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, nargs="+", default=list(N_UPDATES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=8, help="of each machine of the stack")
    parser.add_argument("--output", type=Path, default=Path("pretraining.json"))
    options = parser.parse_args()
    data = load("mnist", n_valid=0)
    x, y = data.train.flatten(1).float() / 255, data.train_labels
    test, test_y = data.test.flatten(1).float() / 255, data.test_labels
    few, valid = slice(0, 50_000), slice(50_000, 60_000)
    results: dict[str, object] = {}
    stacks: list[hm.DBN] = []
    for seed in range(options.seeds):
        started = time.process_time()
        stacks.append(pretrained(x, seed, options.epochs))
        print(f"stack of seed {seed}: {time.process_time() - started:.0f} s", flush=True)
    for n in options.labels:
        for kind in ("pretrained", "random"):

            def start(seed: int, kind: str = kind) -> nn.Sequential:
                network = stacks[seed].to_network(10)
                return redraw(network, generator=torch.Generator().manual_seed(seed)) if kind == "random" else network

            def rows(seed: int, n: int = n) -> Tensor:
                generator = torch.Generator().manual_seed(100 + seed)
                return known_labels(y[few], min(n, 50_000), generator=generator) if n < 50_000 else torch.arange(50_000)

            tried = {}
            grid = GRID_OF_MANY if n > 10_000 else GRID
            for dropout, rate in itertools.product(grid["dropout"], grid["rate"]):
                index, settings = rows(0), {"dropout": dropout, "rate": rate, "n_updates": N_UPDATES[n]}
                network = tuned(start(0), x[index], y[index], seed=0, **settings)
                tried[error(network, x[valid], y[valid])] = settings
            best = tried[min(tried)]
            found, cpu = [], time.process_time()
            for seed in range(options.seeds):
                index = torch.arange(60_000) if n == 60_000 else rows(seed)
                found.append(error(tuned(start(seed), x[index], y[index], seed=seed, **best), test, test_y))
            mean, spread = statistics.mean(found), statistics.stdev(found) if len(found) > 1 else 0.0
            validation = {f"{share:.2f}": settings for share, settings in tried.items()}
            results[f"{n} {kind}"] = {"test": found, "chosen": best, "validation": validation}
            options.output.write_text(json.dumps(results, indent=2))
            said = f"{n:>6} labels, {kind:<10}: test error {mean:.2f} ± {spread:.2f} % {found}"
            print(f"{said} by {best}; {time.process_time() - cpu:.0f} s", flush=True)


if __name__ == "__main__":
    main()
