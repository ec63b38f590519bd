"""How many patterns Hopfield networks hold: measured, beside the theory of infinitely many units.

    python examples/hopfield.py --output runs/hopfield

Random patterns, Hebb's rule, recall at zero temperature one unit at a time: the mean overlap with the pattern over the
load p/N, started at the pattern itself and with a fifth of its units flipped, and in a network four times as large,
beside the curve of Amit, Gutfreund and Sompolinsky (1985) with its end at 0.138. Then the dense network (k = 3) and the
modern one, which is asked for 10 N patterns in one step. Prints tables; `capacity.png` and
the numbers go into `--output`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

import harmonium as hm
from harmonium.models.hopfield import mean_field_overlap
from harmonium.plots.style import COLORS, INK, chart, legend, new_figure

LOADS = (0.05, 0.10, 0.12, 0.138, 0.16, 0.18, 0.20)
FLIPPED = 0.2
N_CUES = 10

Recall = Callable[[Tensor, Tensor], Tensor]
"""`recall(patterns, cues)` returns what a network that holds the patterns makes of the cues."""


def spins(n_patterns: int, n: int, generator: torch.Generator) -> Tensor:
    return torch.randint(0, 2, (n_patterns, n), generator=generator).float() * 2 - 1


def overlaps(recall: Recall, n_patterns: int, n: int, share: float, n_draws: int) -> dict[str, float]:
    """Return the mean overlap over draws of the patterns, its standard error, and the share above 0.95.

    Of each draw at most 10 patterns serve as cues: all are alike.
    """
    means, recalled = [], []
    for draw in range(n_draws):
        generator = torch.Generator().manual_seed(draw)
        patterns = spins(n_patterns, n, generator)
        wanted = patterns[:N_CUES]
        noise = torch.rand(wanted.shape, generator=generator)
        found = (recall(patterns, torch.where(noise < share, -wanted, wanted)) * wanted).mean(1)
        means.append(found.mean().item())
        recalled.append((found > 0.95).float().mean().item())
    values = torch.tensor(means, dtype=torch.float64)
    error = (values.std() / len(values) ** 0.5).item() if len(values) > 1 else 0.0
    return {
        "overlap": values.mean().item(),
        "error": error,
        "recalled": sum(recalled) / len(recalled),
    }


def stored_by(rule: str) -> Recall:
    def recall(patterns: Tensor, cues: Tensor) -> Tensor:
        return hm.Hopfield.store(patterns, rule).recall(cues, n_steps=30, generator=torch.Generator().manual_seed(0))

    return recall


def dense(patterns: Tensor, cues: Tensor) -> Tensor:
    network = hm.Hopfield.dense(patterns, order=3)
    return network.recall(cues, n_steps=10, generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def modern(patterns: Tensor, cues: Tensor) -> Tensor:
    return hm.Hopfield.modern(patterns).reconstruct(cues).sign()


def curve(name: str, rule: str, n: int, share: float, n_draws: int, loads: tuple[float, ...]) -> dict[str, list[float]]:
    """Return the overlap at each load, printed as it is found."""
    found: dict[str, list[float]] = {
        "load": [],
        "overlap": [],
        "error": [],
        "recalled": [],
    }
    for load in loads:
        score = overlaps(stored_by(rule), max(1, round(load * n)), n, share, n_draws)
        found["load"].append(load)
        for key, value in score.items():
            found[key].append(value)
        said = f"{score['overlap']:.3f} ± {score['error']:.3f}, {score['recalled']:.0%} above 0.95"
        print(f"{name}, load {load:.3f}: overlap {said}", flush=True)
    return found


def draw_picture(curves: dict[str, dict[str, list[float]]], path: Path) -> None:
    figure = new_figure(8.0, 4.2)
    axes = chart(figure, 1, 1, 1, title="", x="load p/N", y="overlap with the pattern")
    for color, (name, found) in zip(COLORS, curves.items(), strict=False):
        spread = [2 * error for error in found["error"]]
        axes.errorbar(
            found["load"],
            found["overlap"],
            spread,
            color=color,
            marker="o",
            markersize=3.5,
            label=name,
        )
    loads, m = mean_field_overlap()
    axes.plot(loads, m, color=INK, linewidth=2, label="theory, N → ∞, T = 0")
    axes.plot([loads[-1], loads[-1]], [m[-1], 0], color=INK, linewidth=1, linestyle="--")
    axes.set_xlim(0, max(LOADS) + 0.01)
    axes.set_ylim(0, 1.03)
    legend(axes)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20, help="draws of the patterns at each point")
    parser.add_argument("--output", type=Path, help="a folder for the picture and the results")
    parser.add_argument("--smoke", action="store_true", help="finish in seconds, to see that it runs")
    arguments = parser.parse_args()
    small = arguments.smoke
    draws, n = (1, 40) if small else (arguments.draws, 500)
    loads = LOADS[1:6:2] if small else LOADS
    few = max(1, draws // 4)
    others = {}
    for name, recall, n_patterns, share in (
        ("pseudo-inverse, 0.5 N patterns", stored_by("pseudo-inverse"), n // 2, 0.1),
        ("dense k = 3, 2 N patterns", dense, 2 * n, FLIPPED),
        ("modern, 10 N patterns, one step", modern, 10 * n, FLIPPED),
        ("control: Hebb, 10 N patterns", stored_by("hebb"), 10 * n, FLIPPED),
    ):
        others[name] = score = overlaps(
            recall,
            n_patterns,
            n,
            share,
            few if "dense" in name or "control" in name else draws,
        )
        said = f"overlap {score['overlap']:.4f} ± {score['error']:.4f}, {score['recalled']:.1%} above 0.95"
        print(f"{name}, N = {n}, {share:.0%} flipped: {said}", flush=True)
    curves = {
        f"Hebb, N = {n}, from the pattern": curve("hebb, pattern", "hebb", n, 0.0, draws, loads),
        f"Hebb, N = {n}, {FLIPPED:.0%} flipped": curve("hebb, flipped", "hebb", n, FLIPPED, draws, loads),
        f"Hebb, N = {4 * n}, from the pattern": curve("hebb, 4 N, pattern", "hebb", 4 * n, 0.0, few, loads),
        f"Storkey, N = {n}, from the pattern": curve("storkey, pattern", "storkey", n, 0.0, few, loads[3:]),
    }
    if arguments.output is not None:
        arguments.output.mkdir(parents=True, exist_ok=True)
        (arguments.output / "results.json").write_text(json.dumps({"curves": curves, "others": others}, indent=1))
        draw_picture(curves, arguments.output / "capacity.png")


if __name__ == "__main__":
    main()
