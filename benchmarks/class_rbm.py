"""The RBM with a label on MNIST: hybrid, generative and discriminative, and few labels with the other images unlabeled.

The recipes of `TRIED` are compared on the last 10,000 training images with seed 0. The best of each then learns from
all 60,000, or from 1,000 labels alone and with the 59,000 other images, with three seeds, and is tested. Gray values
are classified in every case. Results are kept in a file and not computed again.

    python -m benchmarks.class_rbm
    python -m benchmarks.class_rbm --try '{"rate": 0.2}'
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import asdict, dataclass, replace
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


TRIED: dict[str, list[Recipe]] = {
    "hybrid": [Recipe(rate=1.0, weight=weight) for weight in (0.01, 0.03, 0.1)],
    "generative": [Recipe(weight=1.0, rate=rate) for rate in (0.05, 0.2, 0.5, 1.0)],
    "discriminative": [
        Recipe(weight=0.0, optimizer="adam", rate=rate, centering=False) for rate in (0.003, 0.006, 0.012)
    ],
    "few labels alone": [Recipe(rate=0.2, weight=weight, epochs=200, batch_size=50) for weight in (0.03, 0.3)],
    "few labels with the other images": [
        Recipe(rate=0.2, weight=weight, epochs=4, repeats=10) for weight in (0.1, 0.3)
    ],
}
"""What is tried on validation data for each figure."""

LARGER: dict[str, list[dict[str, int]]] = {
    "hybrid": [{"n_hidden": 1500, "epochs": 20}, {"n_hidden": 1500, "epochs": 30}]
}
"""Sizes and lengths that are then tried on validation data with the best settings; the best of these is tested."""

LABELS = {"few labels alone": "alone", "few labels with the other images": "with"}


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

    def best(self, what: str) -> Recipe:
        """Return the recipe with the lowest error on validation data among those tried for something, seed 0."""
        labels = LABELS.get(what, "all")
        tried = {recipe: self.score(recipe, 0, labels=labels) for recipe in TRIED[what]}
        found = min(tried, key=tried.__getitem__)
        larger = [replace(found, **size) for size in LARGER.get(what, [])]
        tried |= {recipe: self.score(recipe, 0, labels=labels) for recipe in larger}
        return min(tried, key=tried.__getitem__)

    def compare(self, what: str, seeds: int) -> None:
        """Learn by the best recipe with several seeds and print test errors."""
        recipe = self.best(what)
        errors = [self.score(recipe, seed, labels=LABELS.get(what, "all"), on="test") for seed in range(seeds)]
        spread = f" ± {statistics.stdev(errors):.2f}" if len(errors) > 1 else ""
        print(f"{what}: test {statistics.mean(errors):.2f}{spread} % ({', '.join(map(str, errors))})", flush=True)


def main() -> None:
    """Choose on validation data, then print test errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(TRIED), default=list(TRIED))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--try", type=json.loads, dest="tried", help="a recipe, scored on validation data and no more")
    parser.add_argument("--labels", choices=["all", "alone", "with"], default="all", help="of `--try`")
    parser.add_argument("--output", type=Path, default=Path("class_rbm.jsonl"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    benchmark = Benchmark(options.output)
    if options.tried is not None:
        benchmark.score(Recipe(**options.tried), 0, labels=options.labels)
        return
    for what in options.only:
        benchmark.compare(what, options.seeds)


if __name__ == "__main__":
    main()
