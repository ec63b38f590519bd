"""A joint energy model of MNIST with a small convolutional network, beside the same network as a plain classifier.

    python examples/jem_mnist.py --seeds 3 --output runs/jem
    python examples/jem_mnist.py --seeds 3 --output runs/plain --baseline
    python examples/jem_mnist.py --seeds 3 --output runs/jem-unweighted --unweighted
    python examples/jem_mnist.py --seeds 3 --labels 100 --output runs/jem-100
    python examples/jem_mnist.py --seeds 3 --labels 100 --output runs/plain-100 --baseline

Finds the files by HARMONIUM_DATA. Prints test error, calibration error and AUROC against Fashion-MNIST for each seed
and their mean ± standard deviation. Seeds that `--output` has results of are not run again. The loss is
L_clf + 0.05 L_gen (0.3 with few labels), which makes a better classifier than `-ln p(x, y) = L_clf + L_gen`;
`--unweighted` is the latter.
`--validate` scores 10,000 training images that are held out, on which settings are chosen.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import pad

import harmonium as hm
from harmonium.data import load, scale
from harmonium.evaluation.classify.calibration import expected_calibration_error
from harmonium.evaluation.ood import auroc, fpr95
from harmonium.evaluation.outlier_scores import outlier_scores
from harmonium.learning.monitors import Guard, JointCurves
from harmonium.learning.objectives import ReplayBuffer
from harmonium.types import EnergyModel

ALL_LABELS = {
    "updates": 2000,
    "batch": 100,
    "rate": 1.5e-3,
    "generation_weight": 0.05,
    "energy_penalty": 2e-4,
    "renewal": 0.05,
}
"""Weights and rate by a few short runs, judged on the last 10,000 training images; the updates by the time at hand."""

UNWEIGHTED = ALL_LABELS | {"rate": 1e-2, "generation_weight": 1.0, "energy_penalty": 2e-3}
"""Rate and penalty by runs of 300 updates with `--validate`, the one with the lowest validation error."""

FEW_LABELS = {
    "updates": 600,
    "batch": 64,
    "rate": 1e-3,
    "generation_weight": 0.3,
    "energy_penalty": 1e-3,
    "renewal": 0.1,
}
"""From one short run with 100 labels, judged likewise; used for 1,000 as it is."""


class HalfCosine(hm.learning.Callback):
    """Stop after `n_updates`; the learning rate rises for 100 updates, then falls along half a cosine."""

    def __init__(self, n_updates: int) -> None:
        self.n_updates, self.factor = n_updates, 1.0

    def on_update(self, training: hm.learning.Training) -> None:
        """Set the rate, and stop at the end."""
        share = training.update / self.n_updates
        factor = min(1.0, training.update / 100) * (0.01 + 0.99 * (1 + math.cos(math.pi * min(share, 1.0))) / 2)
        for group in training.optimizer.param_groups:  # times a ratio, so that a guard's lower rate stays lower
            group["lr"] *= factor / self.factor
        self.factor = factor
        training.stop = share >= 1


class Progress(hm.learning.Callback):
    """Print a line now and then."""

    def __init__(self, every: int = 200) -> None:
        self.every = every

    def on_update(self, training: hm.learning.Training) -> None:
        """Print the parts of the loss."""
        if training.update % self.every == 0:
            print(training.update, {k: round(v, 3) for k, v in training.objective.metrics.items()}, flush=True)


class HalfTheChains(hm.learning.objectives.JointLikelihood):
    """One chain for two rows of data: a classifier wants many rows, and it is the chains that cost time."""

    def draw_negatives(self, model: EnergyModel, n: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Return the ends of half as many chains."""
        return super().draw_negatives(model, max(1, n // 2), generator=generator)


class Starts(hm.laws.ClassGaussians):
    """Starts of four kinds, as often each, cut to the box: blurred digits, bolder ones, fine and coarse clouds.

    The clouds are there for the energy of pictures that are no digits.
    """

    @classmethod
    def of(cls, x: Tensor) -> Starts:
        """Return the starts for pictures like these."""
        digits = hm.laws.ClassGaussians.fitted(x, torch.zeros(len(x), dtype=torch.int64), floor=0.1)
        mean, factor = digits.mean[0], digits.factor[0]
        cloud = torch.full_like(mean, -0.3)
        means = [mean, mean, cloud, cloud]
        return cls(torch.stack(means), torch.stack([factor, 2 * factor, clouds(2.0), clouds(5.0)]))

    def initial(self, labels: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw one point for each label."""
        return super().initial(labels, generator=generator).clamp_(-1, 1)


def clouds(length: float) -> Tensor:
    """Return the Cholesky factor of the covariance `0.64 exp(-r²/2·length²)` between the pixels of a picture."""
    line = torch.arange(28, dtype=torch.float64)
    places = torch.cartesian_prod(line, line)
    covariance = torch.exp(-torch.cdist(places, places).square() / (2 * length**2))
    return (0.8 * torch.linalg.cholesky(covariance + 1e-3 * torch.eye(784, dtype=torch.float64))).float()


def shifted(x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Return pictures moved by up to one pixel each way."""
    wide = pad(x, (1, 1, 1, 1), value=-1.0)
    down, right = torch.randint(0, 3, (2, len(x), 1), generator=generator)
    side = torch.arange(28)
    rows, columns = (down + side)[:, :, None], (right + side)[:, None, :]
    return wide[torch.arange(len(x))[:, None, None], 0, rows, columns].unsqueeze(1)


def every_shift(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the nine pictures that `shifted` may make of each."""
    wide = pad(x, (1, 1, 1, 1), value=-1.0)
    parts = [wide[:, :, i : i + 28, j : j + 28] for i in range(3) for j in range(3)]
    return torch.cat(parts), y.repeat(9)


def few_labels(labels: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """Return the numbers of n samples, as many of each class."""
    order = torch.randperm(len(labels), generator=generator)
    return torch.cat([order[labels[order] == y][: n // 10] for y in range(10)])


def train(arguments: argparse.Namespace, seed: int) -> tuple[hm.JEM, dict[str, float], Tensor | None]:
    generator = torch.Generator().manual_seed(seed)
    data, other = load("mnist", n_valid=10_000), load("fashion-mnist", n_valid=10_000)
    held_out, outside = (data.valid, other.valid) if arguments.validate else (data.test, other.test)
    labels = data.valid_labels if arguments.validate else data.test_labels
    x, y, labeled = data.train, data.train_labels, None
    if not arguments.validate:
        x, y = torch.cat([x, data.valid]), torch.cat([y, data.valid_labels])
    x, test, outside = (2 * scale(part, 255) - 1 for part in (x, held_out, outside))
    if arguments.smoke:
        x, y, test, outside = x[:512], y[:512], test[:500], outside[:500]
    elif arguments.labels < len(y):
        known = few_labels(y, arguments.labels, generator)
        labeled = every_shift(x[known], y[known])
        y = torch.full_like(y, -1)
    buffer = None
    if not arguments.baseline:
        buffer = ReplayBuffer(n_chains=2000, renewal=arguments.renewal, starts=Starts.of(x))
    jem = hm.JEM(hm.networks.SmallConv((1, 28, 28), 10, generator=generator))
    objective = HalfTheChains(
        n_steps=2 if arguments.smoke else arguments.steps,
        sampler=hm.Langevin(step_size=arguments.step_size, noise=arguments.noise),
        buffer=buffer,
        generation_weight=0.0 if arguments.baseline else arguments.generation_weight,
        energy_penalty=arguments.energy_penalty,
        input_noise=arguments.input_noise,
        labeled=labeled,
        n_labeled=64,
    )
    if labeled is not None and arguments.baseline:
        x, y = x[:1], y[:1]  # rows without a label are of no use to a plain classifier
    guard = Guard(every=100)
    average = hm.ParameterAverage(0.99, start=100)
    started, cpu = time.perf_counter(), time.process_time()
    hm.fit(
        jem,
        (x, y),
        objective,
        optimizer=torch.optim.Adam(jem.parameters(), arguments.rate),
        epochs=100_000,
        batch_size=arguments.batch,
        transform=shifted,
        transforms=[average],
        monitors=[JointCurves(), guard],
        callbacks=[HalfCosine(3 if arguments.smoke else arguments.updates), Progress()],
        generator=generator,
    )
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    average.swap(jem)
    probabilities = torch.cat([jem.predict_proba(rows) for rows in test.split(1000)])
    error = (probabilities.argmax(-1) != labels[: len(test)]).double().mean().item()
    inside, beyond = outlier_scores(jem, test), outlier_scores(jem, outside)
    result = {
        "seed": seed,
        f"{'validation' if arguments.validate else 'test'}_error": error,
        "calibration_error": expected_calibration_error(probabilities, labels[: len(test)]),
        "rollbacks": guard.rollbacks,
        "seconds": seconds,
        "cpu_seconds": cpu,
    }
    for name in inside:
        result[f"auroc_{name}"] = auroc(inside[name], beyond[name])
        result[f"fpr95_{name}"] = fpr95(inside[name], beyond[name])
    return jem, result, None if buffer is None else buffer.chains


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from 0")
    parser.add_argument("--labels", type=int, default=60_000, help="how many labels are known: 100, 1000 or 60000")
    parser.add_argument("--baseline", action="store_true", help="train the network as a plain classifier")
    parser.add_argument("--unweighted", action="store_true", help="no weight between the two parts of -ln p(x, y)")
    parser.add_argument("--steps", type=int, default=10, help="Langevin steps of each update")
    parser.add_argument("--step-size", type=float, default=0.2)
    parser.add_argument("--noise", type=float, default=0.03)
    parser.add_argument("--input-noise", type=float, default=0.1)
    for name, value in ALL_LABELS.items():
        text = f"{value:g}, or {FEW_LABELS[name]:g} with few labels"
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), help=text)
    parser.add_argument("--output", type=Path, help="a folder for samples and results")
    parser.add_argument("--validate", action="store_true", help="score 10,000 training images that are held out")
    parser.add_argument("--smoke", action="store_true", help="finish in seconds, to see that it runs")
    arguments = parser.parse_args()
    recipe = ALL_LABELS if arguments.labels >= 60_000 else FEW_LABELS
    if arguments.unweighted:
        recipe = UNWEIGHTED if recipe is ALL_LABELS else recipe | {"generation_weight": 1.0}
    for name, value in recipe.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    results: list[dict[str, float]] = []
    record = None if arguments.output is None else arguments.output / "results.json"
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
