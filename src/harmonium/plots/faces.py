"""The pictures of the experiment on faces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from torch import Tensor

from harmonium.plots.grids import image_rows, save_grid
from harmonium.plots.style import BLUE, GRAY, INK, chart, new_figure


def write_face_pictures(samples: Tensor, groups: Mapping[str, dict[str, Tensor]], folder: Path) -> list[Path]:
    """Write samples as a grid and each group of rows (see `image_rows`) under its name as PNG; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "samples.png"]
    save_grid(samples, tuple(samples.shape[1:]), paths[0], limits=(0.0, 1.0))
    for name, rows in groups.items():
        if rows:
            paths.append(folder / f"{name}.png")
            image_rows(rows).savefig(paths[-1])
    return paths


def frechet_curve(records: dict[str, Any]) -> Figure:
    """Return the Fréchet distance over the CPU time of training, with the baselines as level lines."""
    figure, curve = new_figure(), records["curve"]
    score = records["dbn"]["frechet"]
    name = f"{score['score']} ({score['network']})"
    axes = chart(figure, 1, 1, 1, title="Samples while it learns", x="CPU minutes of training", y=name)
    minutes = [point["cpu_seconds"] / 60 for point in curve]
    axes.plot(minutes, [point["frechet"] for point in curve], color=BLUE, marker="o", markersize=4)
    for baseline, label in (("pca", "PCA, as many as codes"), ("pca_top", "PCA, as many as the top")):
        value = records[baseline]["frechet"]["value"]
        axes.axhline(value, color=GRAY, linestyle="--", linewidth=1)
        axes.annotate(label, (0.02, value), xycoords=("axes fraction", "data"), fontsize=8, color=INK, va="bottom")
    return figure
