"""The bias of contrastive divergence against its number of steps, exactly: python benchmarks/cd_bias.py [folder]

Data have the law of a random machine (10 visible, 5 hidden units, weights of three sizes), all 1,024 states of it, and
the model is that machine with its parameters moved by normal numbers of a tenth of the size of the weights. No sample
is drawn anywhere: Gibbs sampling is a matrix, and so CD-k has an exact mean gradient.

Left: the distance of the mean CD-k gradient from that of the log-likelihood, relative to the length of the latter.
Right: the angle between the two. Lines are means of 20 seeds, bands run from the smallest to the largest.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from statistics import fmean

import torch

from harmonium.draws import draw_normal
from harmonium.experiments.comparison.teacher import make_teacher
from harmonium.plots.style import BLUE, GREEN, ORANGE, chart, legend, new_figure
from harmonium.testing.transitions import expected_cd_gradient, gibbs_matrix

STRENGTHS, STEPS, SEEDS = (0.5, 1.0, 2.0), (1, 2, 5, 10, 20, 50, 100), 20


def biases(strength: float, seed: int) -> list[tuple[float, float]]:
    """Return for each number of steps the relative bias of the gradient and its angle in degrees."""
    generator = torch.Generator().manual_seed(seed)
    rbm = make_teacher("bernoulli", 10, 5, strength, generator=generator).double().requires_grad_(True)
    states, _ = gibbs_matrix(rbm)
    data = (-rbm.energy(states)).softmax(0).detach()
    with torch.no_grad():
        for p in rbm.parameters():
            p.add_(0.1 * strength * draw_normal(p, generator=generator))
    rbm.accumulate_grad(states, data - (-rbm.energy(states)).softmax(0).detach())
    right = torch.cat([p.grad.flatten() for p in rbm.parameters()])
    found = []
    for k in STEPS:
        gradient = expected_cd_gradient(rbm, data, k)
        cosine = (gradient @ right / (gradient.norm() * right.norm())).clamp(-1, 1).item()
        found.append((((gradient - right).norm() / right.norm()).item(), math.degrees(math.acos(cosine))))
    return found


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    found = {strength: [biases(strength, seed) for seed in range(SEEDS)] for strength in STRENGTHS}
    figure = new_figure(9.0, 3.3)
    titles = (("Bias of the gradient", "relative to its length"), ("Angle to the right gradient", "degrees"))
    for i, (title, unit) in enumerate(titles):
        axes = chart(figure, 1, 2, i + 1, title=title, x="Gibbs steps of CD", y=unit)
        for color, strength in zip((BLUE, GREEN, ORANGE), STRENGTHS, strict=True):
            columns = [[seed[j][i] for seed in found[strength]] for j in range(len(STEPS))]
            print(
                f"{title}, weights {strength:g}:",
                ", ".join(f"{fmean(c):.2g} (k = {k})" for k, c in zip(STEPS, columns, strict=True)),
            )
            axes.plot(
                STEPS, list(map(fmean, columns)), color=color, marker="o", markersize=3, label=f"weights {strength:g}"
            )
            axes.fill_between(
                STEPS, list(map(min, columns)), list(map(max, columns)), color=color, alpha=0.15, linewidth=0
            )
        axes.set_xscale("log")
        if i == 0:
            axes.set_yscale("log")
            axes.set_ylim(1e-6, 2)
    legend(figure.axes[1])
    figure.savefig(folder / "cd_bias.png")
    (folder / "cd_bias.json").write_text(json.dumps({"steps": STEPS, "bias and angle": found}, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs/cd-bias"))
