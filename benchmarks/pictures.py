"""The two pictures of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator

from benchmarks.runner import FLOOR, OURS

COLORS = {OURS: "#1f5fa8", "scikit-learn": "#e08e2b", "learnergy": "#5a9e5a", "rbms": "#b5473c"} | {
    "torchebm": "#7d5ba6",
    "ebmkit": "#8a8a8a",
}


def draw_ratios(results: list[dict[str, Any]], file: Path) -> None:
    """Draw what every contender costs as a multiple of the floor."""
    cases = [result for result in results if FLOOR in result["medians"]]
    entries = [(r, name) for r in cases for name in r["medians"] if name != FLOOR]
    figure, axes = plt.subplots(figsize=(8, 0.6 + 0.3 * len(entries) + 0.25 * len(cases)), layout="constrained")
    y, ticks = 0.0, []
    for result in cases:
        names = [name for name in result["medians"] if name != FLOOR]
        limits = [bar["limit"] for bar in result["bars"] if bar["against"] == FLOOR]
        for i, name in enumerate(names):
            value = result["times_floor"][name]
            axes.barh(y + i, value - 1, left=1, color=COLORS.get(name, "#444444"), height=0.8)
            right = max(value, 1, *(limits if i == 0 else ()))  # beside the mark of the bar, not under it
            axes.text(right, y + i, f" {name} {value:.2f}", va="center", fontsize=8)
        for limit in limits:
            axes.plot([limit, limit], [y - 0.5, y + 0.5], color="black", linewidth=1.5)
        ticks.append((y + (len(names) - 1) / 2, result["case"]))
        y += len(names) + 0.8
    axes.set_xscale("log")
    axes.set_xlim(left=min(0.95, *(r["times_floor"][name] for r, name in entries)) if entries else None)
    axes.set_xlim(right=axes.get_xlim()[1] * 1.4)
    axes.set_xticks([1, 1.5, 2, 3, 5, 8], labels=["1", "1.5", "2", "3", "5", "8"])
    axes.minorticks_off()
    axes.set_yticks([t for t, _ in ticks], labels=[label for _, label in ticks])
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("cost as a multiple of the floor (black marks: the bar)")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    _save(figure, file)


def draw_scaling(curves: list[dict[str, Any]], file: Path) -> None:
    """Draw the cost against size, with a line of slope one through the last point."""
    figure, grid = plt.subplots(2, 3, figsize=(10, 6), layout="constrained")
    for axes, curve in zip(grid.flat, curves, strict=True):
        sizes, cost = curve["sizes"], [1000 * s for s in curve["seconds"]]
        axes.loglog(sizes, [cost[-1] * size / sizes[-1] for size in sizes], color="#bbbbbb", label="linear")
        axes.loglog(sizes, cost, "o-", color=COLORS[OURS], label=curve["what"])
        axes.set_xticks(sizes, labels=[str(size) for size in sizes], fontsize=7)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.set_xlabel(curve["label"])
        axes.set_ylabel("ms")
        axes.legend(frameon=False, fontsize=8)
    _save(figure, file)


def _save(figure: Any, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150, metadata={"Software": None})
    plt.close(figure)
