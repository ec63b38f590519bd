"""A joint energy model of MNIST with a small convolutional network, beside the same network as a plain classifier.

    python examples/jem_mnist.py --minutes 40 --seeds 3 --out runs/jem
    python examples/jem_mnist.py --minutes 40 --seeds 3 --out runs/plain --baseline
    python examples/jem_mnist.py --minutes 20 --labels 100 --out runs/jem-100

Finds the files by HARMONIUM_DATA. Prints test error, calibration error and AUROC against Fashion-MNIST for each seed
and their mean ± standard deviation. Seeds that `--out` has results of are not run again.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import torch
from torch import Tensor

import harmonium as hm
from harmonium.data import load, scale
from harmonium.evaluation.calibration import expected_calibration_error
from harmonium.evaluation.ood import auroc, fpr95
from harmonium.evaluation.outlier_scores import outlier_scores


class Budget(hm.Callback):
    """Stop after some time, the learning rate falling along half a cosine meanwhile."""

    def __init__(self, minutes: float, n_updates: int | None = None) -> None:
        self.minutes, self.n_updates, self.factor = minutes, n_updates, 1.0

    def on_start(self, training: hm.learning.Training) -> None:
        """Look at the clock."""
        self.started = time.perf_counter()

    def on_update(self, training: hm.learning.Training) -> None:
        """Set the rate, and stop at the end."""
        if self.n_updates is not None:
            share = training.update / self.n_updates
        else:
            share = (time.perf_counter() - self.started) / (60 * self.minutes)
        factor = 0.01 + 0.99 * (1 + math.cos(math.pi * min(share, 1.0))) / 2
        for group in training.optimizer.param_groups:  # times a ratio, so that a guard's lower rate stays lower
            group["lr"] *= factor / self.factor
        self.factor = factor
        training.stop = share >= 1


class Progress(hm.Callback):
    """Print a line now and then."""

    def __init__(self, every: int = 200) -> None:
        self.every = every

    def on_update(self, training: hm.learning.Training) -> None:
        """Print the parts of the loss."""
        if training.update % self.every == 0:
            print(training.update, {k: round(v, 3) for k, v in training.objective.metrics.items()}, flush=True)


def few_labels(labels: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """Return the numbers of n samples, as many of each class."""
    order = torch.randperm(len(labels), generator=generator)
    return torch.cat([order[labels[order] == y][: n // 10] for y in range(10)])


def train(arguments: argparse.Namespace, seed: int) -> tuple[hm.JEM, dict[str, float], Tensor | None]:
    generator = torch.Generator().manual_seed(seed)
    data = load("mnist", n_valid=0)
    x, test = (2 * scale(part, 255) - 1 for part in (data.train, data.test))
    outside = 2 * scale(load("fashion-mnist", n_valid=0).test, 255) - 1
    y, labeled = data.train_labels, None
    if arguments.smoke:
        x, y, test, outside = x[:512], y[:512], test[:500], outside[:500]
    elif arguments.labels < len(y):
        known = few_labels(y, arguments.labels, generator)
        labeled = (x[known], y[known])
        y = torch.full_like(y, -1)
    groups = y if labeled is None else torch.zeros_like(y)  # chains start at blurred digits
    starts = hm.ClassGaussians.fitted(x, groups, floor=0.1)
    jem = hm.JEM(hm.SmallConv((1, 28, 28), 10, generator=generator))
    objective = hm.JointLikelihood(
        n_steps=2 if arguments.smoke else arguments.steps,
        sampler=hm.Langevin(step_size=arguments.step_size, noise=arguments.noise),
        buffer=hm.ReplayBuffer(n_chains=2000, renewal=0.05, starts=starts),
        generation_weight=0.0 if arguments.baseline else arguments.generation_weight,
        input_noise=arguments.input_noise,
        labeled=labeled,
        n_labeled=min(64, arguments.labels),
    )
    guard = hm.Guard(every=100)
    budget = Budget(arguments.minutes, 3 if arguments.smoke else None)
    started = time.perf_counter()
    hm.fit(
        jem,
        (x, y),
        objective,
        optimizer=torch.optim.Adam(jem.parameters(), arguments.rate),
        epochs=100_000,
        batch_size=arguments.batch,
        monitors=[hm.JointCurves(), guard],
        callbacks=[budget, Progress()],
        generator=generator,
    )
    seconds = time.perf_counter() - started
    probabilities = torch.cat([jem.predict_proba(rows) for rows in test.split(1000)])
    inside, other = outlier_scores(jem, test), outlier_scores(jem, outside)
    result = {
        "seed": seed,
        "test_error": (probabilities.argmax(-1) != data.test_labels[: len(test)]).double().mean().item(),
        "calibration_error": expected_calibration_error(probabilities, data.test_labels[: len(test)]),
        "rollbacks": guard.rollbacks,
        "seconds": seconds,
    }
    for name in inside:
        result[f"auroc_{name}"] = auroc(inside[name], other[name])
        result[f"fpr95_{name}"] = fpr95(inside[name], other[name])
    chains = objective.buffer.chains if objective.buffer is not None else None
    return jem, result, chains


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=40.0, help="the time to train, for each seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from 0")
    parser.add_argument("--labels", type=int, default=60_000, help="how many labels are known: 100, 1000 or 60000")
    parser.add_argument("--baseline", action="store_true", help="train the network as a plain classifier")
    parser.add_argument("--steps", type=int, default=10, help="Langevin steps of each update")
    parser.add_argument("--step-size", type=float, default=0.2)
    parser.add_argument("--noise", type=float, default=0.03)
    parser.add_argument("--input-noise", type=float, default=0.1)
    parser.add_argument("--generation-weight", type=float, default=1.0)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--out", type=Path, help="a folder for samples and results")
    parser.add_argument("--smoke", action="store_true", help="finish in seconds, to see that it runs")
    arguments = parser.parse_args()
    results: list[dict[str, float]] = []
    record = None if arguments.out is None else arguments.out / "results.json"
    if record is not None and record.exists():
        results = json.loads(record.read_text())
    for seed in range(arguments.seeds):
        if any(result["seed"] == seed for result in results):
            continue
        _jem, result, chains = train(arguments, seed)
        results.append(result)
        print({name: round(value, 4) for name, value in result.items()}, flush=True)
        if record is not None:
            record.parent.mkdir(parents=True, exist_ok=True)
            record.write_text(json.dumps(results, indent=1))
            if chains is not None:
                from harmonium.plots.grids import save_grid

                path = record.parent / f"chains-{seed}.png"
                save_grid(chains[:100], (1, 28, 28), path, n_columns=10, limits=(-1.0, 1.0))
    for name in (name for name in results[0] if name != "seed"):
        values = torch.tensor([result[name] for result in results], dtype=torch.float64)
        spread = values.std() if len(values) > 1 else 0.0
        print(f"{name:22} {values.mean():.4f} ± {spread:.4f}")


if __name__ == "__main__":
    main()
