"""Draws the panels that are plain data: whatever a kind of model or an experiment wants to show."""

from __future__ import annotations

import itertools
from functools import singledispatch

from matplotlib.ticker import MaxNLocator

from harmonium.plots.film import animated
from harmonium.plots.filters import filters
from harmonium.plots.grids import image_rows, sample_grid
from harmonium.plots.page import Picture, Section
from harmonium.plots.scores import reliability_diagram
from harmonium.plots.style import (
    BLUE,
    COLORS,
    DIVERGING,
    GRAY,
    INK,
    bars,
    chart,
    colorbar,
    edges_of,
    legend,
    new_figure,
)
from harmonium.runs.panels import (
    Bars,
    Calibration,
    Film,
    Filters,
    GroupedBars,
    Heatmap,
    Histograms,
    ImageGrid,
    ImageRows,
    Lines,
    Panel,
    Shown,
)
from harmonium.runs.shades import Limits

_NAME, _LINE = 16, 45  # letters of a name below a bar, and of all of them without turning


def draw_panel(panel: Panel, limits: Limits | None = None) -> Section:
    """Return a panel with its pictures drawn; `limits` are black and white in images that do not say."""
    return Section(panel.title, panel.text, [draw_picture(shown, limits) for shown in panel.pictures])


@singledispatch
def draw_picture(shown: Shown, limits: Limits | None = None) -> Picture:
    """Return one picture of a panel.

    >>> draw_picture(Bars("errors", "In percent.", {"here": 1.2, "there": 2.4})).figure.axes[0].get_title()
    ''
    """
    raise TypeError(
        f"There is no way to draw {type(shown).__name__}. Use one of the pictures in harmonium.runs.panels."
    )


@draw_picture.register
def _(shown: ImageGrid, limits: Limits | None = None) -> Picture:
    black_white = limits if shown.limits is None else shown.limits
    figure = sample_grid(shown.images, tuple(shown.images.shape[1:]), shown.n_columns, limits=black_white)
    return Picture(shown.name, shown.caption, figure, False, True)


@draw_picture.register
def _(shown: ImageRows, limits: Limits | None = None) -> Picture:
    return Picture(shown.name, shown.caption, image_rows(shown.rows), False, True)


@draw_picture.register
def _(shown: Film, limits: Limits | None = None) -> Picture:
    return Picture(shown.name, shown.caption, animated(shown.films, limits=(0.0, 1.0)), False)


@draw_picture.register
def _(shown: Filters, limits: Limits | None = None) -> Picture:
    return Picture(shown.name, shown.caption, filters(shown.machine, shape=shown.shape), False, True)


@draw_picture.register
def _(shown: Lines, limits: Limits | None = None) -> Picture:
    figure = new_figure()
    axes = chart(figure, 1, 1, 1, title=shown.title, x=shown.x_label, y=shown.y_label)
    for color, (name, values) in zip(itertools.cycle(COLORS), shown.series.items()):
        marker = "o" if len(values) < 30 else ""
        axes.plot(list(shown.x), list(values), color=color, linewidth=1.5, marker=marker, markersize=4, label=name)
    for (name, value), dashes in zip(shown.levels.items(), itertools.cycle(("--", ":", "-."))):
        axes.axhline(value, color=GRAY, linestyle=dashes, linewidth=1, label=name)
    if all(isinstance(x, int) for x in shown.x):
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    if len(shown.series) + len(shown.levels) > 1:
        legend(axes)
    return Picture(shown.name, shown.caption, figure)


@draw_picture.register
def _(shown: Bars, limits: Limits | None = None) -> Picture:
    figure = new_figure()
    axes = chart(figure, 1, 1, 1, title=shown.title, y=shown.y_label)
    names = list(shown.values)
    errors = [2 * shown.errors.get(name, 0.0) for name in names] if shown.errors else None
    axes.bar(names, list(shown.values.values()), yerr=errors, color=BLUE, alpha=0.75, width=0.6, ecolor=INK)
    axes.grid(False, axis="x")
    return Picture(shown.name, shown.caption, figure)


@draw_picture.register
def _(shown: GroupedBars, limits: Limits | None = None) -> Picture:
    figure = new_figure()
    axes = chart(figure, 1, 1, 1, title=shown.title, y=shown.y_label)
    width = 0.8 / len(shown.series)
    for i, (color, (name, values)) in enumerate(zip(itertools.cycle(COLORS), shown.series.items())):
        places = [j + (i - (len(shown.series) - 1) / 2) * width for j in range(len(values))]
        axes.bar(places, list(values), width=width, color=color, alpha=0.75, label=name)
    names = [name if len(name) <= _NAME else f"{name[: _NAME - 1]}…" for name in shown.names]
    is_tight = sum(map(len, names)) > _LINE
    axes.set_xticks(
        range(len(names)), names, rotation=30 if is_tight else 0, ha="right" if is_tight else "center", parse_math=False
    )
    axes.grid(False, axis="x")
    axes.margins(y=0.25)  # room for the legend above the bars
    legend(axes, ncols=len(shown.series))
    return Picture(shown.name, shown.caption, figure)


@draw_picture.register
def _(shown: Heatmap, limits: Limits | None = None) -> Picture:
    values = shown.values.detach().cpu().float()
    signed = bool((values < 0).any())
    top = values.abs().max().item() or 1.0
    figure = new_figure(7.6, 4.4)
    axes = chart(figure, 1, 1, 1, title=shown.title, x=shown.x_label, y=shown.y_label, grid=False)
    colors, low = (DIVERGING, -top) if signed else ("viridis", 0.0)
    drawn = axes.imshow(values.numpy(), cmap=colors, vmin=low, vmax=top, aspect="auto", interpolation="nearest")
    colorbar(figure, axes, drawn, "")
    return Picture(shown.name, shown.caption, figure, False, True)


@draw_picture.register
def _(shown: Histograms, limits: Limits | None = None) -> Picture:
    figure = new_figure()
    axes = chart(figure, 1, 1, 1, title=shown.title, x=shown.x_label, y="density")
    edges = edges_of(list(shown.values.values()))
    for color, (name, values) in zip(itertools.cycle(COLORS), shown.values.items()):
        bars(axes, values, edges, color, name)
    legend(axes)
    return Picture(shown.name, shown.caption, figure)


@draw_picture.register
def _(shown: Calibration, limits: Limits | None = None) -> Picture:
    return Picture(shown.name, shown.caption, reliability_diagram(shown.bins), False)
