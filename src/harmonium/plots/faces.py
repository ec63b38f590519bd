"""The pictures of the experiment on faces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from harmonium.plots.grids import mosaic, save_grid
from harmonium.plots.style import BLUE, GRAY, INK, chart, new_figure, picture


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


def image_rows(rows: dict[str, Tensor]) -> Figure:
    """Return rows of images `(n, channels, height, width)` in [0, 1], one below the other, each with its name.

    >>> figure = image_rows({"data": torch.zeros(4, 3, 8, 8), "made": torch.ones(4, 3, 8, 8)})
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['data', 'made']
    """
    images = torch.cat(list(rows.values()))
    n_columns, height = len(images) // len(rows), images.shape[-2]
    sheet = mosaic(images, tuple(images.shape[1:]), n_columns, limits=(0.0, 1.0))
    figure = new_figure(8.0, 8.0 * sheet.shape[0] / sheet.shape[1] + 0.2)
    axes = picture(figure, 1, 1, 1)
    axes.imshow(sheet.numpy(), interpolation="nearest")
    axes.set_yticks([i * (height + 1) + (height - 1) / 2 for i in range(len(rows))], list(rows))
    return figure


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
