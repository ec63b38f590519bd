"""How well the guard brings diverging trainings back, by its factor on the rate: `python benchmarks/guard.py`.

Joint energy models of the 8×8 digits with settings that make them diverge, each with several seeds. The control is the
same training without a guard.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch

import harmonium as hm
from harmonium.data import load, scale
from harmonium.learning.monitors import Guard
from harmonium.learning.objectives import JointLikelihood, ReplayBuffer


@dataclass(frozen=True)
class Provoked:
    """Settings of a training, good ones unless something is provoked."""

    rate: float = 1e-3
    n_steps: int = 20
    input_noise: float = 0.15
    weight: float = 1.0
    renewal: float = 0.02


DIVERGENCES = {
    "rate 0.1": Provoked(rate=0.1),
    "rate 0.3": Provoked(rate=0.3),
    "rate 1": Provoked(rate=1.0),
    "rate 0.1, 2 steps": Provoked(rate=0.1, n_steps=2),
    "rate 0.1, no input noise": Provoked(rate=0.1, input_noise=0.0),
    "rate 0.1, weight 10": Provoked(rate=0.1, weight=10.0),
    "rate 0.1, all chains new": Provoked(rate=0.1, renewal=1.0),
}
"""What is provoked: rates 100 to 1,000 times that of `examples/jem_digits.py`, alone and with something else."""


def accuracy(settings: Provoked, guard: Guard | None, epochs: int, seed: int) -> float | None:
    """Return the test accuracy after training, None if the guard gave up."""
    generator = torch.Generator().manual_seed(seed)
    data = load("digits")
    x, test = (2 * scale(part, 16) - 1 for part in (data.train, data.test))
    jem = hm.JEM(hm.MLP((1, 8, 8), 10, hidden=(256, 256), generator=generator))
    objective = JointLikelihood(
        n_steps=settings.n_steps,
        sampler=hm.Langevin(step_size=0.2, noise=0.05),
        buffer=ReplayBuffer(n_chains=2000, renewal=settings.renewal),
        generation_weight=settings.weight,
        input_noise=settings.input_noise,
    )
    try:
        hm.fit(
            jem,
            (x, data.train_labels),
            objective,
            optimizer=torch.optim.Adam(jem.parameters(), settings.rate),
            epochs=epochs,
            batch_size=128,
            monitors=[] if guard is None else [guard],
            generator=generator,
        )
    except hm.learning.TrainingDiverged:
        return None
    return (jem.classify(test) == data.test_labels).double().mean().item()


def line(name: str, found: Sequence[float | None], rollbacks: Sequence[int]) -> str:
    ended = [value for value in found if value is not None]
    poor, lowest = sum(value < 0.9 for value in ended), min(ended, default=float("nan"))
    return (
        f"| {name} | {len(found) - len(ended)} of {len(found)} | {poor} | {lowest:.1%} | "
        f"{sum(rollbacks) / len(rollbacks):.1f} |"
    )


def main() -> None:
    """Train, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--slower", type=float, nargs="*", default=[0.7, 0.3])
    parser.add_argument("--only", nargs="*", default=list(DIVERGENCES))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| slower | gave up | below 90 % accuracy | lowest | mean rollbacks |\n|---|---|---|---|---|")
    for slower in [*options.slower, None]:
        found, rollbacks = [], []
        for name in options.only:
            for seed in range(options.seeds):
                guard = None if slower is None else Guard(slower=slower)
                found.append(accuracy(DIVERGENCES[name], guard, options.epochs, seed))
                rollbacks.append(0 if guard is None else guard.rollbacks)
        print(line("no guard" if slower is None else str(slower), found, rollbacks), flush=True)


if __name__ == "__main__":
    main()
