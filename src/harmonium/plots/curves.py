"""Metrics over the epochs of training, with bands for their errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from harmonium.plots.style import CHART, COLORS, GRAY, chart, legend, new_figure
from harmonium.runs.metric_words import COUNTS, LABELS, LEVELS, PANELS, TITLES

Panel = str | Sequence[str]
"""One metric, or several that share a pair of axes."""


def curves(records: Sequence[Mapping[str, Any]], metrics: Sequence[Panel] | None = None) -> Figure:
    """Return one chart for each panel of metrics over the epochs.

    A band of two standard errors is drawn where a record has `<metric>_error`; log-likelihoods share `log_z_error`.
    Values that are not finite are left out.

    >>> curves([{"epoch": 1, "r_hat": 1.2}, {"epoch": 2, "r_hat": 1.1}], ["r_hat"]).axes[0].get_xlabel()
    'epoch'
    """
    panels = panels_of(records) if metrics is None else [(m,) if isinstance(m, str) else tuple(m) for m in metrics]
    for panel in panels:
        missing = [metric for metric in panel if not _points(records, metric)[0]]
        if missing:
            known = sorted({key for record in records for key in record})
            raise ValueError(
                f"No record has a finite {missing[0]!r}. The records hold {', '.join(known) or 'nothing'}."
            )
    if not panels:
        raise ValueError("The records hold no metric to draw. Train with monitors, or name the metrics.")
    n_columns = min(3, len(panels))
    n_rows = math.ceil(len(panels) / n_columns)
    figure = new_figure(CHART[0] * n_columns, CHART[1] * n_rows)
    for i, panel in enumerate(panels):
        title, unit = TITLES.get(panel[0], (panel[0].replace("_", " "), ""))
        _draw(chart(figure, n_rows, n_columns, i + 1, title=title, x="epoch", y=unit), records, panel)
    return figure


def panels_of(records: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return the panels of `PANELS` with the metrics that the records hold."""
    present = [tuple(metric for metric in panel if _points(records, metric)[0]) for panel in PANELS]
    return [panel for panel in present if panel]


def _draw(axes: Axes, records: Sequence[Mapping[str, Any]], panel: Sequence[str]) -> None:
    band: str | None = "± 2 standard errors"
    for color, metric in zip(COLORS, panel, strict=False):
        epochs, values, errors = _points(records, metric)
        marker = "o" if len(epochs) < 30 else ""
        label = LABELS.get(metric, metric.replace("_", " "))
        axes.plot(epochs, values, color=color, linewidth=1.5, marker=marker, markersize=2.5, label=label)
        if any(errors):
            low = [v - 2 * e for v, e in zip(values, errors, strict=True)]
            high = [v + 2 * e for v, e in zip(values, errors, strict=True)]
            axes.fill_between(epochs, low, high, color=color, alpha=0.18, linewidth=0, label=band)
            band = None
    if panel[0] in COUNTS:
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        top = max(1.0, axes.get_ylim()[1])
        axes.set_ylim(-0.03 * top, top)
    if panel[0] in LEVELS:
        axes.axhline(LEVELS[panel[0]], color=GRAY, linestyle="--", linewidth=0.9)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
    if len(axes.get_legend_handles_labels()[0]) > 1:
        legend(axes)


def _points(records: Sequence[Mapping[str, Any]], metric: str) -> tuple[list[float], list[float], list[float]]:
    """Return epochs, values and errors (0 where there is none) of a metric, where it is finite."""
    own = f"{metric}_error"
    shared = metric.endswith("log_likelihood") and not any(own in record for record in records)
    error_name = "log_z_error" if shared else own
    rows = []
    for i, record in enumerate(records):
        value = record.get(metric)
        if value is not None and math.isfinite(value):
            error = record.get(error_name) or 0.0
            rows.append((float(record.get("epoch", i + 1)), float(value), error if math.isfinite(error) else 0.0))
    epochs, values, errors = zip(*rows, strict=True) if rows else ((), (), ())
    return list(epochs), list(values), list(errors)
