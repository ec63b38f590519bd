"""Does a stack of machines help a classifier? The same network from a pretrained stack and from random weights.

A DBN 784-500-1000 learns all 60,000 training images of MNIST without their labels, layer by layer. Then the network
that it becomes and the same network with random weights learn from some labels, by the same grid of settings, each with
the one that is best for it on the last 10,000 training images (seed 0), whose labels are not learned from meanwhile.

    python -m benchmarks.pretraining --labels 100 1000 10000 60000 --seeds 3
    python -m benchmarks.pretraining --labels 60000 --layers "dense 500, dense 500, dense 2000" --updates 16000
    python -m benchmarks.pretraining --labels 60000 --deep deep_mnist/*.safetensors

`--deep` are deep Boltzmann machines in files, one for each seed, such as `benchmarks.deep_mnist` leaves; their networks
are then tuned alone.
Stacks and results are kept in the folder `--output` and not computed again.
"""

from __future__ import annotations

import argparse
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

import harmonium as hm
from benchmarks.results_file import ResultsFile
from harmonium.data import load
from harmonium.data.known_labels import known_labels
from harmonium.learning.greedy import fit_greedy
from harmonium.learning.objectives import CrossEntropy
from harmonium.models.class_log_probabilities import class_log_probabilities
from harmonium.networks.layers import redraw

LAYERS = "dense 500, dense 1000"
N_UPDATES = {100: 300, 1000: 1000, 10_000: 2500, 60_000: 32_000}
TRIED = [(0.0, 3e-4), (0.0, 1e-3), (0.5, 3e-4), (0.5, 1e-3)]
TRIED_OF_ALL = [(0.5, 1e-3), (0.5, 3e-3)]
"""Shares of hidden units that are left out, and rates of Adam; without the first, inputs are not left out either."""


def pretrained(x: Tensor, seed: int, epochs: int, layers: str) -> hm.DBN:
    """Return the stack, trained layer by layer."""
    generator = torch.Generator().manual_seed(seed)
    dbn = hm.DBN.from_spec(layers, shape=(784,), generator=generator)

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


class Benchmark:
    """The data, the stacks, and what is known already."""

    def __init__(
        self,
        folder: Path,
        epochs: int,
        deep: Sequence[Path] = (),
        layers: str = LAYERS,
        n_updates: Mapping[int, int] = N_UPDATES,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.epochs, self.results = folder, epochs, ResultsFile(folder / "results.jsonl")
        self.deep, self.layers, self.n_updates = deep, layers, n_updates
        data = load("mnist", n_valid=0)
        if data.train_labels is None or data.test is None or data.test_labels is None:
            raise ValueError("MNIST has labels and a test set.")
        self.x, self.y = data.train.flatten(1).float() / 255, data.train_labels
        self.test = data.test.flatten(1).float() / 255, data.test_labels

    def start(self, kind: str, seed: int) -> nn.Sequential:
        """Return the network of a pretrained stack or of the deep machine, or the same one with random weights."""
        if kind == "deep":
            return hm.load(self.deep[seed]).to_network(10)  # type: ignore[no-any-return, operator]
        widths = "-".join(re.findall(r"\d+", self.layers))
        path = self.folder / f"stack-{widths}-{self.epochs}-{seed}.safetensors"
        if not path.exists():
            pretrained(self.x, seed, self.epochs, self.layers).save(path)
        network: nn.Sequential = hm.load(path).to_network(10)  # type: ignore[assignment, operator]
        return redraw(network, generator=torch.Generator().manual_seed(seed)) if kind == "random" else network

    def score(self, kind: str, n: int, on: str, seed: int, dropout: float, rate: float) -> float:
        """Return the error of a network tuned on n labels, from the file where it is known."""
        asked = {"kind": kind, "labels": n, "on": on, "seed": seed, "dropout": dropout, "rate": rate}
        asked |= {"updates": self.n_updates[n], "epochs": self.epochs, "layers": "" if self.deep else self.layers}
        return float(self.results.find(asked, self._score, kind, n, on, seed, dropout, rate))

    def _score(self, kind: str, n: int, on: str, seed: int, dropout: float, rate: float) -> float:
        first = 60_000 if on == "test" else 50_000
        rows = torch.arange(first)
        if n < first:
            rows = known_labels(self.y[:50_000], n, generator=torch.Generator().manual_seed(100 + seed))
        settings = {"dropout": dropout, "rate": rate}
        network = self.start(kind, seed)
        tuned(network, self.x[rows], self.y[rows], n_updates=self.n_updates[n], seed=seed, **settings)
        return error(network, *(self.test if on == "test" else (self.x[50_000:], self.y[50_000:])))


def main() -> None:
    """Pretrain, choose on validation data, tune on every number of labels, and print errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=int, nargs="+", default=list(N_UPDATES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=10, help="of each machine of the stack")
    parser.add_argument("--layers", default=LAYERS, help="the stack, in the words of DBN.from_spec")
    parser.add_argument("--updates", type=int, help="how many with each number of labels, in place of the usual ones")
    parser.add_argument(
        "--deep", type=Path, nargs="+", default=[], help="deep machines in files, tuned in place of stacks"
    )
    parser.add_argument("--output", type=Path, default=Path("pretraining"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    n_updates = N_UPDATES if options.updates is None else dict.fromkeys(N_UPDATES, options.updates)
    benchmark = Benchmark(options.output, options.epochs, options.deep, options.layers, n_updates)
    for n in options.labels:
        for kind in ("deep",) if options.deep else ("pretrained", "random"):
            tried = {
                settings: benchmark.score(kind, n, "valid", 0, *settings)
                for settings in (TRIED_OF_ALL if n == 60_000 else TRIED)
            }
            best = min(tried, key=tried.__getitem__)
            seeds = range(len(options.deep) or options.seeds)
            found = [benchmark.score(kind, n, "test", seed, *best) for seed in seeds]
            mean, spread = statistics.mean(found), statistics.stdev(found) if len(found) > 1 else 0.0
            listed = ", ".join(f"{value:.2f}" for value in found)
            said = f"{n:>6} labels, {kind:<10}: test error {mean:.2f} ± {spread:.2f} % ({listed})"
            print(f"{said} by dropout {best[0]}, rate {best[1]:g}; validation {tried[best]:.2f} %", flush=True)


if __name__ == "__main__":
    main()
