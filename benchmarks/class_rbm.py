"""The RBM with a label on MNIST: hybrid, generative and discriminative, and few labels with the other images unlabeled.

Everything is chosen on the last 10,000 training images with seed 0 (`choose`), then all 60,000 are learned with the
best settings of each, three seeds (`all`), and 1,000 labels alone and with the 59,000 other images (`few`). Gray values
are classified in every case. Results are kept in a file and not computed again.

    python -m benchmarks.class_rbm choose all few
    python -m benchmarks.class_rbm try --settings '{"rate": 0.2}'
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

import harmonium as hm
from benchmarks.results_file import ResultsFile
from harmonium.data import load
from harmonium.data.known_labels import known_labels
from harmonium.draws import draw_bernoulli
from harmonium.learning.objectives import Hybrid

N_LABELS = 1000


@dataclass(frozen=True)
class Recipe:
    """How a machine learns; `weight` is that of L_gen, `how` says whether gray values are kept or drawn as 0 and 1."""

    n_hidden: int = 500
    weight: float = 0.01
    optimizer: str = "sgd"
    rate: float = 0.5
    how: str = "drawn"
    epochs: int = 10
    batch_size: int = 128
    repeats: int = 1
    centering: bool = True


def drawn(x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Return 0 and 1 with the gray values as probabilities."""
    return draw_bernoulli(x, generator=generator)


def trained(x: Tensor, y: Tensor, recipe: Recipe, seed: int) -> hm.ClassRBM:
    """Return a machine with the average of its parameters, learned at a rate that falls to zero."""
    generator = torch.Generator().manual_seed(seed)
    machine = hm.ClassRBM(hm.Bernoulli(784), hm.Bernoulli(recipe.n_hidden), 10, generator=generator)
    hm.initialize(machine, {"visible": x[:10_000]})
    optimizer: torch.optim.Optimizer = (
        torch.optim.Adam(machine.parameters(), recipe.rate, fused=True)
        if recipe.optimizer == "adam"
        else torch.optim.SGD(machine.parameters(), recipe.rate, momentum=0.9, fused=True)
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch / recipe.epochs)
    average = hm.ParameterAverage(0.999)
    if recipe.repeats > 1:  # rows with a label are there several times: a batch of 128 would hold two of them
        known = (y >= 0).nonzero().squeeze(1).repeat(recipe.repeats - 1)
        x, y = torch.cat([x, x[known]]), torch.cat([y, y[known]])
    hm.fit(
        machine,
        (x, y),
        Hybrid(recipe.weight),
        optimizer=optimizer,
        schedule=schedule,
        epochs=recipe.epochs,
        batch_size=recipe.batch_size,
        transform=drawn if recipe.how == "drawn" else None,
        transforms=[hm.Centering(), average] if recipe.centering and recipe.weight else [average],
        monitors=[],
        generator=generator,
    )
    average.swap(machine)
    return machine


def error(machine: hm.ClassRBM, x: Tensor, y: Tensor) -> float:
    """Return the share of samples that are taken for another class, in %."""
    taken = torch.cat([machine.classify(rows) for rows in x.split(2000)])
    return round(100 * (taken != y).double().mean().item(), 2)


def said(what: str, errors: list[float]) -> None:
    """Print the mean and the spread of some errors."""
    spread = f" ± {statistics.stdev(errors):.2f}" if len(errors) > 1 else ""
    print(f"{what}: {statistics.mean(errors):.2f}{spread} % ({', '.join(map(str, errors))})", flush=True)


class Benchmark:
    """The data, and what is known already."""

    def __init__(self, path: Path) -> None:
        self.results = ResultsFile(path)
        data = load("mnist", n_valid=0)
        if data.train_labels is None or data.test_labels is None or data.test is None:
            raise ValueError("MNIST has labels and a test set.")
        self.x, self.y = data.train.flatten(1).float() / 255, data.train_labels
        self.test, self.test_y = data.test.flatten(1).float() / 255, data.test_labels

    def score(self, recipe: Recipe, seed: int, *, labels: str = "all", on: str = "valid") -> float:
        """Return the error of a recipe on one seed; `labels` is all, alone (few) or with (few, with the others)."""
        asked = {"on": on, "labels": labels, "seed": seed} | asdict(recipe)
        return float(self.results.find(asked, self._score, recipe, seed, labels, on))

    def _score(self, recipe: Recipe, seed: int, labels: str, on: str) -> float:
        n = 50_000 if on == "valid" else 60_000
        x, y = self.x[:n], self.y[:n]
        held_out = (self.x[n:], self.y[n:]) if on == "valid" else (self.test, self.test_y)
        if labels != "all":
            rows = known_labels(y, N_LABELS, generator=torch.Generator().manual_seed(100 + seed))
            x, y = (x[rows], y[rows]) if labels == "alone" else (x, torch.full_like(y, -1).scatter(0, rows, y[rows]))
        return error(trained(x, y, recipe, seed), *held_out)

    def best(self, labels: str, weights: tuple[float, ...]) -> Recipe:
        """Return the recipe with the lowest error on validation data among those tried with seed 0."""
        tried = [
            (line["found"], line["asked"])
            for line in self.results.known.values()
            if line["asked"]["on"] == "valid" and line["asked"]["labels"] == labels
            if line["asked"]["weight"] in weights
        ]
        _, asked = min(tried, key=lambda pair: pair[0])
        return Recipe(**{name: value for name, value in asked.items() if name not in ("on", "labels", "seed")})


def main() -> None:
    """Choose on validation data, then print test errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", nargs="+", choices=["choose", "all", "few", "try"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--settings", type=json.loads, default={}, help="of `try`: a recipe, scored on validation data")
    parser.add_argument("--labels", choices=["all", "alone", "with"], default="all", help="of `try`")
    parser.add_argument("--output", type=Path, default=Path("class_rbm.jsonl"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    benchmark = Benchmark(options.output)
    if "try" in options.stages:
        benchmark.score(Recipe(**options.settings), 0, labels=options.labels)


if __name__ == "__main__":
    main()
