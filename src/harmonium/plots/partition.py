"""Where estimates of log Z lie between its bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harmonium.plots.style import BLUE, GRAY, GREEN, INK, ORANGE, chart, new_figure
from harmonium.types import Estimate

APPROXIMATE = ("bethe", "perturb-and-map")
"""Kinds that no chain and no bound stands behind."""


def log_z_between_bounds(found: Mapping[str, Estimate]) -> Figure:
    """Return the estimates by method beside the guaranteed bounds: all of it on the left, what is trusted on the right.

    The shaded range is where log Z lies for certain. A point has a bar of its 3 errors or bounds; an empty point is not
    trusted.
    """
    figure = new_figure(7.4, 1.5 + 0.32 * len(found))
    bounding = [e for kind, e in found.items() if kind != "exact"] or list(found.values())
    low = max((e.at_least for e in bounding), default=-math.inf)
    high = min((e.at_most for e in bounding), default=math.inf)
    shown = {kind: e for kind, e in found.items() if kind != "bounds"} or dict(found)
    everything = [x for kind, e in shown.items() if kind not in APPROXIMATE for x in (e.value, e.lower, e.upper)]
    everything += [low, high]
    sure = [e for e in shown.values() if e.trusted] or list(shown.values())
    near = [x for e in sure for x in (e.value, e.lower, e.upper)]
    for place, title, values in ((1, "Between the guaranteed bounds", everything), (2, "Close by", near)):
        axes = chart(figure, 1, 2, place, title=title, x="log Z in nats")
        _rows(axes, shown, low, high, *_range(values))
        if place == 1:
            axes.set_yticks(range(len(shown)), list(shown), parse_math=False)
        else:
            axes.set_yticks(range(len(shown)), [""] * len(shown))
    return figure


def _range(values: list[float]) -> tuple[float, float]:
    finite = [x for x in values if math.isfinite(x)] or [0.0]
    low, high = min(finite), max(finite)
    margin = 0.08 * (high - low) or 0.05
    return low - margin, high + margin


def _rows(axes: Axes, found: Mapping[str, Estimate], low: float, high: float, left: float, right: float) -> None:
    axes.axvspan(max(low, left), min(high, right), color=GREEN, alpha=0.12, linewidth=0)
    for edge in (low, high):
        if left < edge < right:
            axes.axvline(edge, color=GREEN, linewidth=1.2)
    for i, (kind, estimate) in enumerate(found.items()):
        color = ORANGE if kind in APPROXIMATE else BLUE
        ends = [min(max(x, left), right) for x in (estimate.lower, estimate.upper)]
        if math.isfinite(estimate.lower) or math.isfinite(estimate.upper):
            axes.plot(ends, [i, i], color=color, linewidth=2.0, solid_capstyle="butt")
        face = color if estimate.trusted else "white"
        axes.plot([estimate.value], [i], "o", color=color, markerfacecolor=face, markersize=6, clip_on=True)
    axes.set_xlim(left, right)
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.ticklabel_format(axis="x", useOffset=False, style="plain")
    axes.tick_params(axis="y", length=0, colors=INK)
    axes.locator_params(axis="x", nbins=5)
    axes.spines["left"].set_color(GRAY)
