"""One look for all figures: their canvas, colors and axes. Nothing here touches the global state of matplotlib.

Names come from users, so that a dollar sign is one, not the start of a formula.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

BLUE, ORANGE, GREEN, PURPLE, GRAY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#6E7781"
SKY, AMBER = "#56B4E9", "#E69F00"
"""Colors of Okabe and Ito (2008), told apart with any kind of color vision."""

COLORS = (BLUE, ORANGE, GREEN, PURPLE, SKY, AMBER)
INK = "#24292F"
GRID = "#E4E7EB"
DIVERGING = "RdBu_r"
"""The color map of signed values: blue below zero, white at zero, red above."""

CHART = (4.4, 2.9)
"""Width and height of a chart in inches."""


def new_figure(width: float = CHART[0], height: float = CHART[1]) -> Figure:
    """Return an empty figure of this size in inches, on the Agg canvas."""
    figure = Figure(figsize=(width, height), dpi=150, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def chart(figure: Figure, *place: int, title: str = "", x: str = "", y: str = "", grid: bool = True) -> Axes:
    """Add axes for a chart, with its title and what its axes measure."""
    axes = figure.add_subplot(*place)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRAY)
    axes.tick_params(colors=INK, labelsize=8, color=GRAY, length=3)
    axes.set_axisbelow(True)
    if grid:
        axes.grid(True, color=GRID, linewidth=0.7)
    axes.set_title(title, fontsize=10, color=INK, loc="left", fontweight="bold", parse_math=False)
    axes.set_xlabel(x, fontsize=9, color=INK, parse_math=False)
    axes.set_ylabel(y, fontsize=9, color=INK, parse_math=False)
    return axes


def picture(figure: Figure, *place: int, title: str = "") -> Axes:
    """Add axes for a picture: no frame and no ticks."""
    axes = figure.add_subplot(*place)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize=8, colors=INK)
    axes.set_title(title, fontsize=10, color=INK, loc="left", fontweight="bold", parse_math=False)
    return axes


def legend(axes: Axes, **options: Any) -> None:
    """Add a plain legend for what carries a label."""
    made = axes.legend(frameon=False, fontsize=8, labelcolor=INK, handlelength=1.6, **options)
    for text in made.get_texts():
        text.set_parse_math(False)


def colorbar(figure: Figure, axes: Axes, mappable: Any, label: str) -> None:
    """Add a color bar that says what the colors measure."""
    bar = figure.colorbar(mappable, cax=axes.inset_axes((1.02, 0.0, 0.025, 1.0)), ticks=MaxNLocator(6))
    bar.set_label(label, fontsize=9, color=INK, parse_math=False)
    bar.ax.tick_params(labelsize=8, colors=INK, length=3)
    bar.outline.set_visible(False)


def bars(
    axes: Axes,
    values: Tensor,
    edges: Tensor,
    color: str,
    label: str,
) -> None:
    """Draw a histogram, scaled to area one, as a light surface with a clear outline."""
    options: dict[str, Any] = {"bins": edges.numpy(), "density": True, "color": color}
    numbers = values.detach().double().cpu().numpy()
    axes.hist(numbers, histtype="stepfilled", alpha=0.22, **options)
    axes.hist(numbers, histtype="step", linewidth=1.4, label=label, **options)


def edges_of(values: list[Tensor]) -> Tensor:
    """Return edges for histograms over the range of all values: `2√n` bins for n values, 8 to 60.

    >>> len(edges_of([torch.rand(32)])), len(edges_of([torch.rand(9), torch.rand(2000)]))
    (13, 61)
    """
    low = min(v.min().item() for v in values)
    high = max(v.max().item() for v in values)
    n_bins = min(60, max(8, math.ceil(2 * math.sqrt(max(v.numel() for v in values)))))
    return torch.linspace(low, high, n_bins + 1) if high > low else torch.linspace(low - 0.5, low + 0.5, n_bins + 1)
