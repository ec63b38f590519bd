"""Densities in the plane learned by four objectives, held against the truth by quadrature.

    python examples/densities_2d.py --seeds 3 --output runs/densities

Moons, a ring of eight Gaussians and a pinwheel are learned by one network and one budget of updates with maximum
likelihood (persistent chains of Langevin or of MALA steps), denoising score matching, sliced score matching and
noise-contrastive estimation. Prints KL(truth ‖ model) in nats as a table, mean ± standard deviation over seeds; 0 is
perfect. The densities of the last seed beside the truth go into `--output`.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

import harmonium as hm
from harmonium.data import mixture, mixture_log_density, moons, pinwheel
from harmonium.learning.objectives import (
    DenoisingScoreMatching,
    NoiseContrastive,
    Objective,
    ReplayBuffer,
    SlicedScoreMatching,
)

REACH, N_GRID = 4.5, 181


def moons_log_density(x: Tensor, noise: float = 0.1) -> Tensor:
    """Return the log density of two half circles with Gaussian noise: an integral over the angle."""
    t = (torch.arange(500, dtype=torch.float64) + 0.5) * math.pi / 500
    upper, lower = torch.stack([t.cos(), t.sin()], 1), torch.stack([1 - t.cos(), 0.5 - t.sin()], 1)
    centers = torch.cat([upper, lower])
    squares = torch.cdist(x.double(), centers).square()
    return (-squares / (2 * noise**2)).logsumexp(1) - math.log(len(centers) * 2 * math.pi * noise**2)


def pinwheel_log_density(
    x: Tensor, n_arms: int = 5, along: float = 0.3, across: float = 0.1, rate: float = 0.25
) -> Tensor:
    """Return the log density of the pinwheel.

    A point is `2 R(φ) (a, c)` with `φ = 2πk/K + rate eᵃ`; for each arm the a that lead to x are the sign changes of
    `a - x·e(φ(a))/2`, and the density of each is that of (a, c) over `4 |1 - φ'(a) c|`.
    """
    a = torch.linspace(-0.8, 2.8, 721, dtype=torch.float64)
    density = torch.zeros(len(x), dtype=torch.float64)
    for rows in torch.arange(len(x)).split(2048):
        u = x[rows].double() / 2
        for k in range(n_arms):
            angle = 2 * math.pi * k / n_arms + rate * a.exp()
            gap = a - u[:, :1] * angle.cos() - u[:, 1:] * angle.sin()
            root = gap[:, :-1] * gap[:, 1:] <= 0
            which, left = root.nonzero(as_tuple=True)
            share = gap[which, left] / (gap[which, left] - gap[which, left + 1])
            at = a[left] + share * (a[1] - a[0])
            phi = 2 * math.pi * k / n_arms + rate * at.exp()
            c = -u[which, 0] * phi.sin() + u[which, 1] * phi.cos()
            volume = 4 * (1 - rate * at.exp() * c).abs().clamp_min(1e-6)
            law = torch.exp(-((at - 1) ** 2) / (2 * along**2) - c**2 / (2 * across**2)) / (2 * math.pi * along * across)
            density.index_add_(0, rows[which], law / volume / n_arms)
    return density.clamp_min(1e-300).log()


DATA: dict[str, tuple[Callable[..., Tensor], Callable[[Tensor], Tensor], float]] = {
    "moons": (moons, moons_log_density, 0.1),
    "mixture": (mixture, mixture_log_density, 0.2),
    "pinwheel": (pinwheel, pinwheel_log_density, 0.2),
}
"""How to draw, the true log density, and the narrowest width of it."""


def grid() -> tuple[Tensor, float]:
    """Return the points of an even grid and the area of a cell."""
    axis = torch.linspace(-REACH, REACH, N_GRID, dtype=torch.float64)
    return torch.cartesian_prod(axis, axis), float(axis[1] - axis[0]) ** 2


def normalized(log_density: Tensor, cell: float) -> Tensor:
    """Return log densities that integrate to one over the grid."""
    return log_density.double() - log_density.double().logsumexp(0) - math.log(cell)


def kl(log_p: Tensor, log_q: Tensor, cell: float) -> float:
    """Return KL(p ‖ q) in nats by quadrature."""
    return ((log_p.exp() * (log_p - log_q)).sum() * cell).item()


def single_gaussian(log_p: Tensor, points: Tensor, cell: float) -> float:
    """Return the KL of the Gaussian with the mean and covariance of the truth: what two moments can do."""
    p = log_p.exp() * cell
    mean = p @ points
    covariance = (points - mean).T @ (p[:, None] * (points - mean))
    return (math.log(2 * math.pi * math.e) + torch.logdet(covariance) / 2 + (p * log_p).sum()).item()


def objectives(x: Tensor, width: float) -> dict[str, Objective]:
    """Return the objectives for data of this width."""

    def likelihood(sampler: hm.samplers.Sampler) -> hm.learning.objectives.JointLikelihood:
        return hm.learning.objectives.JointLikelihood(
            n_steps=10, sampler=sampler, buffer=ReplayBuffer(n_chains=2000, renewal=0.01)
        )

    return {
        "maximum likelihood, Langevin": likelihood(hm.Langevin(step_size=0.3 * width**2)),
        "maximum likelihood, MALA": likelihood(hm.MALA(step_size=0.5 * width**2)),
        "denoising": DenoisingScoreMatching(sigma=width / 2),
        "sliced": SlicedScoreMatching(n_projections=2),
        "noise-contrastive": NoiseContrastive(hm.laws.GaussianLaw.fitted(x), ratio=4),
    }


def learned(x: Tensor, objective: Objective, *, epochs: int, generator: torch.Generator) -> hm.NeuralEBM:
    """Train a network on the data, its first features made narrower than usual: so are the densities."""
    net = hm.MLP(2, hidden=(128, 128), generator=generator)
    with torch.no_grad():
        net.layers[1].weight.mul_(4.0)
        net.layers[1].bias.uniform_(-4.0, 4.0, generator=generator)
    model = hm.NeuralEBM(net, box=(-3.0, 3.0), base_std=2.0)
    optimizer = torch.optim.Adam([*model.parameters(), *objective.parameters()], 2e-3)
    average = hm.ParameterAverage(0.99)
    hm.fit(
        model,
        x,
        objective,
        optimizer=optimizer,
        epochs=epochs,
        batch_size=250,
        schedule=torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs),
        transforms=[average],
        monitors=[],
        generator=generator,
    )
    average.swap(model)
    return model


def draw_picture(densities: dict[str, dict[str, Tensor]], path: Path) -> None:
    """Save the densities, one row a data set, one column an objective, on the color scale of the truth."""
    from harmonium.plots.style import new_figure, picture

    n_columns = max(len(row) for row in densities.values())
    figure = new_figure(2.1 * n_columns, 2.25 * len(densities))
    for i, (data, row) in enumerate(densities.items()):
        top = row["truth"].max().item()
        for j, (name, density) in enumerate(row.items()):
            axes = picture(
                figure,
                len(densities),
                n_columns,
                i * n_columns + j + 1,
                title=name.replace(", ", "\n") if i == 0 else "",
            )
            image = density.reshape(N_GRID, N_GRID).T.flip(0).numpy()
            axes.imshow(image, cmap="magma", vmin=0, vmax=top, interpolation="bilinear")
            if j == 0:
                axes.set_ylabel(data)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds, from 0")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--output", type=Path, help="a folder for the picture and the results")
    parser.add_argument("--smoke", action="store_true", help="finish in seconds, to see that it runs")
    arguments = parser.parse_args()
    n, epochs = (250, 1) if arguments.smoke else (arguments.samples, arguments.epochs)
    points, cell = grid()
    results: dict[str, dict[str, list[float]]] = {}
    seconds: dict[str, float] = {}
    densities: dict[str, dict[str, Tensor]] = {}
    for data, (draw, log_density, width) in DATA.items():
        raw = log_density(points)
        log_p = normalized(raw, cell)
        print(f"{data}: the true density has mass {raw.exp().sum().item() * cell:.5f} on the grid", flush=True)
        densities[data] = {"truth": log_p.exp()}
        results[data] = {"single Gaussian": [single_gaussian(log_p, points, cell)]}
        for seed in range(arguments.seeds):
            x = draw(n, generator=torch.Generator().manual_seed(1000 + seed))
            for name, objective in objectives(x, width).items():
                started = time.process_time()
                model = learned(x, objective, epochs=epochs, generator=torch.Generator().manual_seed(seed))
                seconds[name] = seconds.get(name, 0.0) + (time.process_time() - started) / arguments.seeds / len(DATA)
                with torch.no_grad():
                    log_q = normalized(-model.free_energy(points.float()), cell)
                densities[data][name] = log_q.exp()
                results[data].setdefault(name, []).append(kl(log_p, log_q, cell))
                print(f"{data}, seed {seed}, {name}: KL {results[data][name][-1]:.4f}", flush=True)
    names = list(next(iter(results.values())))
    print("\n| objective | " + " | ".join(DATA) + " | CPU seconds |\n|---|" + "---|" * (len(DATA) + 1))
    for name in names:
        cells = []
        for data in DATA:
            values = torch.tensor(results[data][name], dtype=torch.float64)
            cells.append(f"{values.mean():.3f}" + (f" ± {values.std():.3f}" if len(values) > 1 else ""))
        spent = f"{seconds[name]:.0f}" if name in seconds else "–"
        print("| " + " | ".join([name, *cells, spent]) + " |")
    if arguments.output is not None:
        arguments.output.mkdir(parents=True, exist_ok=True)
        (arguments.output / "results.json").write_text(json.dumps(results, indent=1))
        draw_picture(densities, arguments.output / "densities.png")


if __name__ == "__main__":
    main()
