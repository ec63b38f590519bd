"""The bias of contrastive divergence against its number of steps, exactly: python benchmarks/cd_bias.py [folder]

Data have the law of a random machine (8 visible, 5 hidden units, weights of three sizes), all 256 states of it; no
sample is drawn anywhere. Gibbs sampling is a matrix, and so CD-k has an exact mean gradient.

Left: the model is the machine of the data with its parameters moved by normal numbers of a tenth of the size of the
weights; the distance of the mean CD-k gradient from that of the log-likelihood, relative to the length of the latter.
Right: a smaller model (3 hidden units, so that the truth is out of reach) follows its mean CD-k gradient to the end;
nats that it then lies below the model that followed the likelihood from the same start.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import fmean, stdev

import torch

import harmonium as hm
from harmonium.draws import draw_normal
from harmonium.experiments.comparison.teacher import make_teacher
from harmonium.plots.style import BLUE, GREEN, ORANGE, chart, legend, new_figure
from harmonium.testing.transitions import expected_cd_gradient, gibbs_matrix

STRENGTHS, STEPS, SEEDS = (0.5, 1.0, 2.0), (1, 2, 5, 10, 20, 50, 100), 5
N_UPDATES, RATE = 300, 0.1


def law_of(rbm: hm.RBM) -> torch.Tensor:
    states, _ = gibbs_matrix(rbm)
    return (-rbm.energy(states)).softmax(0).detach()


def likelihood_gradient(rbm: hm.RBM, data: torch.Tensor) -> torch.Tensor:
    states, _ = gibbs_matrix(rbm)
    rbm.zero_grad(set_to_none=True)
    rbm.accumulate_grad(states, data - law_of(rbm))
    return torch.cat([p.grad.flatten() for p in rbm.parameters()])


def gradient_bias(strength: float, seed: int) -> list[float]:
    generator = torch.Generator().manual_seed(seed)
    rbm = make_teacher("bernoulli", 8, 5, strength, generator=generator).double().requires_grad_(True)
    data = law_of(rbm)
    with torch.no_grad():
        for p in rbm.parameters():
            p.add_(0.1 * strength * draw_normal(p, generator=generator))
    right = likelihood_gradient(rbm, data)
    return [((expected_cd_gradient(rbm, data, k) - right).norm() / right.norm()).item() for k in STEPS]


def end_of_learning(strength: float, seed: int, steps: int | None) -> float:
    """Return the nats of the data under a model that followed CD-k, or the likelihood if None."""
    generator = torch.Generator().manual_seed(seed)
    data = law_of(make_teacher("bernoulli", 8, 5, strength, generator=generator).double())
    rbm = hm.RBM(hm.Bernoulli(8), hm.Bernoulli(3)).double()
    with torch.no_grad():
        rbm.weight.copy_(0.5 * draw_normal(rbm.weight, generator=generator))
    optimizer = torch.optim.Adam(rbm.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, N_UPDATES)
    for _ in range(N_UPDATES):
        slope = likelihood_gradient(rbm, data) if steps is None else expected_cd_gradient(rbm, data, steps)
        parts = slope.split([p.numel() for p in rbm.parameters()])
        for p, part in zip(rbm.parameters(), parts, strict=True):
            p.grad = part.view_as(p)
        optimizer.step()
        schedule.step()
    return (data * law_of(rbm).log()).sum().item()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    few = [k for k in STEPS if k <= 20]
    biases, losses = {}, {}
    for strength in STRENGTHS:
        biases[strength] = [gradient_bias(strength, seed) for seed in range(SEEDS)]
        print(f"strength {strength}: relative bias of the gradient", mean_and_spread(biases[strength]), flush=True)
        rows = []
        for seed in range(SEEDS):
            best = end_of_learning(strength, seed, None)
            rows.append([best - end_of_learning(strength, seed, k) for k in few])
        losses[strength] = rows
        print(f"strength {strength}: nats lost at the end", mean_and_spread(rows), flush=True)
    (folder / "cd_bias.json").write_text(
        json.dumps({"steps": STEPS, "gradient": biases, "learning_steps": few, "nats": losses}, indent=1)
    )
    figure = new_figure(9.0, 3.3)
    panels = (("Bias of the gradient", "relative to its length", STEPS, biases),)
    panels += (("Nats lost at the end of learning", "nats", few, losses),)
    for i, (title, unit, steps, found) in enumerate(panels):
        axes = chart(figure, 1, 2, i + 1, title=title, x="Gibbs steps of CD", y=unit)
        for color, strength in zip((BLUE, GREEN, ORANGE), STRENGTHS, strict=True):
            means = [fmean(values) for values in zip(*found[strength], strict=True)]
            low, high = ([f(values) for values in zip(*found[strength], strict=True)] for f in (min, max))
            axes.plot(steps, means, color=color, marker="o", markersize=3, label=f"weights of size {strength:g}")
            axes.fill_between(steps, low, high, color=color, alpha=0.15, linewidth=0)
        axes.set_xscale("log")
        axes.set_yscale("log" if i == 0 else "symlog", **({} if i == 0 else {"linthresh": 1e-4}))
    legend(figure.axes[0])
    figure.savefig(folder / "cd_bias.png")


def mean_and_spread(rows: list[list[float]]) -> str:
    columns = zip(*rows, strict=True)
    return ", ".join(f"{fmean(values):.2g} ± {stdev(values):.1g}" for values in columns)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("docs/images"))
