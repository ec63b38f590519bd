"""Learning rules against time."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean, stdev
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from harmonium.plots.style import BLUE, GRAY, GREEN, INK, ORANGE, PURPLE, chart, legend, new_figure

SKY, YELLOW = "#56B4E9", "#C9A400"

STYLES: dict[str, tuple[str, str]] = {
    "exact": (INK, "-"),
    "cd-1": (SKY, "-"),
    "cd-10": (BLUE, "-"),
    "pcd": (ORANGE, "-"),
    "fast-pcd": (GREEN, "-"),
    "tempered-pcd": (PURPLE, "-"),
    "pseudo-likelihood": (BLUE, "--"),
    "pseudo-likelihood, 2 units": (SKY, "--"),
    "ratio-matching": (ORANGE, "--"),
    "probability-flow": (GREEN, "--"),
    "noise-contrastive": (PURPLE, ":"),
    "perturb-and-map": (YELLOW, ":"),
    "score-matching": (BLUE, "-."),
    "sliced-score-matching": (ORANGE, "-."),
    "denoising-score-matching": (GREEN, "-."),
}
"""Color and dash of each rule: chains and counting solid, neighbors dashed, noise dotted, scores dash-dotted."""


def objective_curves(summary: Mapping[str, Any]) -> Figure:
    """Return one chart for each strength: nats below the truth against processor time, mean and spread of the seeds.

    `summary` is what `harmonium compare-objectives` leaves in comparison.json.
    """
    settings = summary["settings"]
    strengths = settings["strengths"]
    figure = new_figure(3.6 * len(strengths) + 2.4, 3.8)
    for i, strength in enumerate(strengths):
        results = [result for result in summary["results"] if result["strength"] == strength]
        axes = chart(
            figure, 1, len(strengths), i + 1, title=f"Weights of size {strength:g}", x="processor seconds",
            y="test nats below the truth" if i == 0 else "",
        )  # fmt: skip
        for result in results:
            _draw(axes, result)
        axes.axhline(results[0]["independent"], color=GRAY, linestyle="--", linewidth=0.9, label="independent units")
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):  # 0.05, not 5 × 10⁻²
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axis.set_minor_formatter(NullFormatter())
        if i == len(strengths) - 1:
            legend(axes, loc="center left", bbox_to_anchor=(1.02, 0.5))
    return figure


def _draw(axes: Axes, result: Mapping[str, Any]) -> None:
    color, dash = STYLES.get(result["rule"], (GRAY, "-"))
    points = []
    for seconds, gaps in zip(result["seconds"], zip(*result["gaps"], strict=True), strict=True):
        found = [gap for gap in gaps if gap is not None and gap > 0]
        if found:
            spread = stdev(found) if len(found) > 1 else 0.0
            points.append((seconds, fmean(found), max(min(found), fmean(found) - spread), fmean(found) + spread))
    if points:
        seconds, means, low, high = zip(*points, strict=True)
        axes.plot(seconds, means, color=color, linestyle=dash, linewidth=1.5, label=result["rule"])
        axes.fill_between(seconds, low, high, color=color, alpha=0.1, linewidth=0)
