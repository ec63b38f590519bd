"""Test error against CPU minutes: cells of `harmonium reproduce table1` at several budgets, as a table and a picture.

harmonium reproduce table1 --threads 1 --levels 255 --budget 2 --output runs/curve-2      # and other budgets
python benchmarks/table1_curve.py runs/table1 runs/curve-* --image docs/images/table1_curve.png
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from harmonium.experiments.table1.cell import PAPER, read_cells
from harmonium.plots.style import BLUE, GRAY, INK, chart, legend, new_figure

Record = dict[str, Any]
TITLES = {"mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "cifar10": "CIFAR-10"}


def points(records: list[Record], name: str) -> list[tuple[int, list[float], float]]:
    """Return filters, test errors in percent of all seeds and mean CPU minutes, by the number of filters."""
    groups: dict[int, list[Record]] = {}
    for record in records:
        if record["data"] == name:
            groups.setdefault(record["settings"]["n_filters"], []).append(record)
    return [
        (n, [100 * cell["error"] for cell in cells], sum(cell["cpu_seconds"] for cell in cells) / len(cells) / 60)
        for n, cells in sorted(groups.items())
    ]


def table(records: list[Record]) -> str:
    """Return all points as a Markdown table."""
    lines = ["| data | filters | CPU min | test error |", "|---|---|---|---|"]
    for name in PAPER:
        for n, errors, minutes in points(records, name):
            each = f" ({', '.join(f'{error:.2f}' for error in errors)})" if len(errors) > 1 else ""
            lines.append(f"| {TITLES[name]} | {n:,} | {minutes:.1f} | {sum(errors) / len(errors):.2f} %{each} |")
    return "\n".join(lines)


def draw_curve(axes: Axes, found: list[tuple[int, list[float], float]], bar: float) -> None:
    """Draw the error over time, the number of filters beside each point, and the paper's error."""
    minutes, means = [point[2] for point in found], [sum(point[1]) / len(point[1]) for point in found]
    axes.axhline(bar, color=GRAY, linestyle="--", linewidth=1.0, label=f"paper, {bar:.2f} %")
    axes.plot(minutes, means, "o-", color=BLUE, markersize=4, linewidth=1.4, label="here, read as means")
    for n, errors, at in found:
        axes.plot([at] * len(errors), errors, ".", color=BLUE, alpha=0.5, markersize=3)
        label = {"fontsize": 7, "color": INK, "textcoords": "offset points", "xytext": (3, 5)}
        axes.annotate(f"{n:,}", (at, sum(errors) / len(errors)), **label)
    axes.set_xscale("log")
    axes.set_xlim(min(minutes) / 1.3, max(minutes) * 1.6)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(0.95 * min(means), max(bar, *means) + 0.15 * (max(bar, *means) - min(means)))
    legend(axes)


def main() -> None:
    """Read the cells, print the table and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--image", type=Path)
    parser.add_argument("--levels", type=int, default=255)
    arguments = parser.parse_args()
    records = [
        record
        for folder in arguments.folders
        for record in read_cells(folder)
        if record["levels"] == arguments.levels and record["reading"] == "mean"
    ]
    print(table(records))
    names = [name for name in PAPER if points(records, name)]
    if arguments.image is None or not names:
        return
    figure = new_figure(3.4 * len(names), 2.9)
    for i, name in enumerate(names):
        axes = chart(figure, 1, len(names), i + 1, title=TITLES[name], x="CPU minutes, one core", y="test error in %")
        draw_curve(axes, points(records, name), PAPER[name].get(arguments.levels, math.nan))
    figure.savefig(arguments.image)


if __name__ == "__main__":
    main()
