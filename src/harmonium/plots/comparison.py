"""The page of several runs: what differs, how they learned, and what they draw, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from torch import Tensor

from harmonium.plots.grids import sample_grid
from harmonium.plots.landscape import samples_2d
from harmonium.plots.page import Picture, Section, page, to_png
from harmonium.plots.style import COLORS, chart, legend, new_figure
from harmonium.runs.atomic import write_atomic
from harmonium.runs.metric_words import PANELS, TITLES
from harmonium.runs.shades import limits_of

_STYLES = ("-", "--", ":", "-.")  # after as many colors as there are


def write_comparison(
    path: Path,
    sentences: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
    records: Mapping[str, Sequence[Mapping[str, Any]]],
    samples: Mapping[str, tuple[Tensor, Tensor]],
) -> Path:
    """Write one page of HTML with everything inside: `settings`, `records` and `samples` by the names of the runs.

    `samples` are pairs of data and of what a run draws, of the same shape.
    """
    sections = []
    shown = [Picture(f"curve-{name}", "One line a run.", overlay(name, records)) for name in _metrics(records)]
    if shown:
        sections.append(Section("Learning", "How each of them learned, on the same axes.", shown))
    drawn = [
        Picture(f"samples-{i}", name, figure, chart=False)
        for i, (name, (data, x)) in enumerate(samples.items())
        if (figure := _drawn(data, x)) is not None
    ]
    if drawn:
        sections.append(Section("Samples", "What each of them draws, from the same seed.", drawn))
    made = [(section, [to_png(picture) for picture in section.pictures]) for section in sections]
    write_atomic(path, page(f"{len(records)} runs", sentences, [], settings, made).encode())
    return path


def overlay(metric: str, records: Mapping[str, Sequence[Mapping[str, Any]]]) -> Figure:
    """Return one metric of several runs over their epochs.

    >>> runs = {"a": [{"epoch": 1, "loss": 2.0}], "b": [{"epoch": 1, "loss": 1.0}, {"epoch": 2, "loss": 0.5}]}
    >>> len(overlay("loss", runs).axes[0].lines)
    2
    """
    title, unit = TITLES.get(metric, TITLES.get(metric.removeprefix("validation_"), (metric, "")))
    title = f"{title}, validation" if metric.startswith("validation_") and metric not in TITLES else title
    figure = new_figure()
    axes = chart(figure, 1, 1, 1, title=title, x="epoch", y=unit)
    for i, (name, lines) in enumerate(records.items()):
        points = [(line["epoch"], line[metric]) for line in lines if line.get(metric) is not None]
        style = _STYLES[i // len(COLORS) % len(_STYLES)]
        if points:
            axes.plot(*zip(*points, strict=True), color=COLORS[i % len(COLORS)], linestyle=style, label=name)
    legend(axes)
    return figure


def _metrics(records: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return the metrics that two runs or more have, those of the panels of a report, likelihoods first."""
    order = [name for panel in PANELS for name in reversed(panel)]
    first = [name for name in order if "log_likelihood" in name]
    has = {name: sum(any(line.get(name) is not None for line in lines) for lines in records.values()) for name in order}
    return [name for name in dict.fromkeys([*first, *order]) if has[name] > 1][:6]


def _drawn(data: Tensor, x: Tensor) -> Figure | None:
    shape = tuple(x.shape[1:])
    if len(shape) in (2, 3):
        return sample_grid(x, shape, limits=limits_of(data))
    return samples_2d(data, x) if shape == (2,) else None
