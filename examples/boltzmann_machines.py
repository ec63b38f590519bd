"""Boltzmann machines in general use: couplings recovered from samples, and hidden units that make a law learnable.

    python examples/boltzmann_machines.py --output runs/boltzmann

First, a random Ising model of 10 spins is drawn from exactly, 10² to 10⁶ times, and its couplings are learned again by
exact maximum likelihood and by persistent chains: the error falls as 1/√n. Then bars and stripes on 3×3 are learned by
machines whose visible units meet each other, with and without hidden units: KL(data ‖ model), exact, in nats. Three
seeds each. Prints tables; `boltzmann.png` and the numbers go into `--output`.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

import harmonium as hm
from harmonium.data import bars_and_stripes
from harmonium.learning.objectives import ExactLikelihood, Objective
from harmonium.plots.style import COLORS, INK, chart, legend, new_figure

N_SPINS, SIDE = 10, 3
BETAS = (0.0, 0.25, 0.5, 0.75, 1.0)


def machine(visible: hm.units.Units, n_hidden: int, generator: torch.Generator) -> hm.BoltzmannMachine:
    """Return a machine whose visible units meet each other, and hidden ones if there are any."""
    n = visible.shape[0]
    units: dict[str, hm.units.Units] = {"visible": visible}
    terms: list[tuple[tuple[str, ...], hm.couplings.Coupling]] = [(("visible", "visible"), hm.Symmetric(n))]
    if n_hidden:
        units["hidden"] = hm.Bernoulli(n_hidden)
        terms.append((("visible", "hidden"), hm.Dense(n, n_hidden, generator=generator)))
    terms += [((name,), hm.Bias(layer.shape)) for name, layer in units.items()]
    return hm.BoltzmannMachine(units, terms)


def learn(
    model: hm.BoltzmannMachine, x: Tensor, weights: Tensor, rule: Objective, n: int, rate: float, seed: int
) -> None:
    """Make `n` updates on all rows at once, the rate falling to zero."""
    optimizer = torch.optim.Adam(model.parameters(), rate)
    hm.fit(
        model,
        x,
        rule,
        optimizer=optimizer,
        epochs=n,
        batch_size=len(x),
        weights=weights,
        monitors=[],
        schedule=LambdaLR(optimizer, lambda epoch: 1 - epoch / n),
        generator=torch.Generator().manual_seed(seed),
    )


def recovered(
    seed: int, n_samples: int, rules: dict[str, tuple[Callable[[], Objective], int, float]]
) -> dict[str, float]:
    """Return the root mean square error of the 45 couplings of a random Ising model, by each rule."""
    generator = torch.Generator().manual_seed(seed)
    truth = machine(hm.Spin(N_SPINS), 0, generator)
    with torch.no_grad():
        truth.couplings[0].weight.copy_(torch.randn(N_SPINS, N_SPINS, generator=generator) / math.sqrt(N_SPINS))
        truth.couplings[1].bias.copy_(0.2 * torch.randn(N_SPINS, generator=generator))
    states = truth.layer("visible").configurations(torch.arange(2**N_SPINS)).float()
    law = (-truth.energy(states).detach().double()).softmax(0)
    drawn = torch.multinomial(law, n_samples, replacement=True, generator=generator)
    counts = torch.bincount(drawn, minlength=len(states)).float()
    seen = counts > 0
    upper = torch.triu_indices(N_SPINS, N_SPINS, 1)
    errors = {}
    for name, (rule, n, rate) in rules.items():
        model = machine(hm.Spin(N_SPINS), 0, generator)
        learn(model, states[seen], counts[seen], rule(), n, rate, seed)
        gap = (model.couplings[0].matrix() - truth.couplings[0].matrix())[upper[0], upper[1]]
        errors[name] = gap.square().mean().sqrt().item()
    return errors


def divergence(n_hidden: int, rule: Objective, n: int, rate: float, seed: int) -> float:
    """Return KL(bars and stripes ‖ model) in nats after `n` updates."""
    patterns, p = bars_and_stripes(SIDE)
    x, p = patterns.flatten(1).float(), p.double()
    model = machine(hm.Bernoulli(SIDE**2), n_hidden, torch.Generator().manual_seed(seed))
    learn(model, x, p.float(), rule, n, rate, seed)
    return (p * (p.log() - hm.log_likelihood(model, x).value)).sum().item()


def draw_picture(
    sizes: list[int], errors: dict[str, list[list[float]]], kl: dict[str, list[float]], path: Path
) -> None:
    figure = new_figure(9.0, 3.8)
    axes = chart(figure, 1, 2, 1, title="Couplings of 10 spins", x="samples n", y="root mean square error")
    for color, (name, rows) in zip(COLORS, errors.items(), strict=False):
        values = torch.tensor(rows)
        axes.errorbar(sizes, values.mean(1), values.std(1), color=color, marker="o", markersize=4, label=name)
    first = torch.tensor(next(iter(errors.values()))[-1]).mean().item()
    line = [first * math.sqrt(sizes[-1] / n) for n in sizes]
    axes.plot(sizes, line, color=INK, linestyle="--", linewidth=1, label="1/√n")
    axes.set_xscale("log")
    axes.set_yscale("log")
    legend(axes)
    axes = chart(figure, 1, 2, 2, title="Bars and stripes, 3×3", x="", y="KL(data ‖ model), nats")
    for i, values in enumerate(kl.values()):
        axes.plot([i] * len(values), values, "o", color=COLORS[0], markersize=5)
    axes.set_xticks(range(len(kl)), [name.replace(", ", "\n") for name in kl])
    axes.set_xlim(-0.5, len(kl) - 0.5)
    axes.set_yscale("log")
    axes.axhline(0.05, color=INK, linestyle="--", linewidth=1)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path, help="a folder for the picture and the results")
    parser.add_argument("--smoke", action="store_true", help="finish in seconds, to see that it runs")
    arguments = parser.parse_args()
    seeds, short = (1, 0.02) if arguments.smoke else (arguments.seeds, 1.0)
    sizes = [10**2, 10**3, 10**4, 10**5, 10**6][: 2 if arguments.smoke else 5]
    rules: dict[str, tuple[Callable[[], Objective], int, float]] = {
        "exact": (ExactLikelihood, round(300 * short), 0.1),
        "PCD, 1,000 chains": (lambda: hm.PCD(n_chains=1000), round(300 * short), 0.05),
    }
    errors: dict[str, list[list[float]]] = {name: [] for name in rules}
    for n in sizes:
        found = [recovered(seed, n, rules) for seed in range(seeds)]
        for name in rules:
            values = torch.tensor([row[name] for row in found])
            errors[name].append(values.tolist())
            print(
                f"{n:>9,} samples, {name}: error of the couplings {values.mean():.5f} ± {values.std():.5f}", flush=True
            )
    for name, rows in errors.items():
        y = torch.tensor(rows[1:]).mean(1).log()
        x = torch.tensor(sizes[1:], dtype=torch.float32).log()
        if len(x) > 1:
            slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
            print(f"{name}: the error falls as n^{slope:.3f} from {sizes[1]:,} to {sizes[-1]:,} samples", flush=True)
    kl: dict[str, list[float]] = {}
    for name, n_hidden, rule, n, rate in (
        ("no hidden, exact", 0, ExactLikelihood, 800, 0.05),
        ("8 hidden, exact", 8, ExactLikelihood, 800, 0.05),
        ("8 hidden, PCD", 8, lambda: hm.PCD(n_chains=500), 1500, 0.02),
        ("8 hidden, tempered PCD", 8, lambda: hm.TemperedPCD(500, n_steps=5, betas=BETAS), 1500, 0.02),
    ):
        kl[name] = [divergence(n_hidden, rule(), max(1, round(n * short)), rate, seed) for seed in range(seeds)]
        print(f"bars and stripes, {name}: KL {', '.join(f'{value:.4f}' for value in kl[name])} nats", flush=True)
    if arguments.output is not None:
        arguments.output.mkdir(parents=True, exist_ok=True)
        (arguments.output / "results.json").write_text(
            json.dumps({"sizes": sizes, "errors": errors, "kl": kl}, indent=1)
        )
        draw_picture(sizes, errors, kl, arguments.output / "boltzmann.png")


if __name__ == "__main__":
    main()
