"""What the hidden units look for: the weights as images or as a heat map."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor, nn

from harmonium.models import BoltzmannMachine
from harmonium.models.data_weight import data_weight
from harmonium.plots.grids import image_shape, mosaic
from harmonium.plots.style import DIVERGING, chart, colorbar, new_figure, picture
from harmonium.runs.shades import largest_shown


def filters(model: nn.Module, n: int = 64, *, shape: Sequence[int] | None = None) -> Figure:
    """Return the columns of W as images, the largest first, or the filters of a convolution.

    All share one scale, so that a unit that learned nothing looks blank. `shape` is that of one sample, needed when the
    visible layer is flat. Filters over 3 channels are shown in color about a mid gray.
    """
    weight = data_weight(model)
    if weight.ndim == 4:
        parts = weight if weight.shape[1] in (1, 3) else weight.flatten(end_dim=1)[:, None]
        images, size = parts.flatten(1), image_shape(parts.shape[1:])
    else:
        own = model.layer(model.data_layer).shape if isinstance(model, BoltzmannMachine) else ()
        images, size = weight.t(), image_shape(own if shape is None else shape)
    total = len(images)
    images = images[images.norm(dim=1).argsort(descending=True)[:n]]
    title = f"The {len(images)} largest of {total} filters" if len(images) < total else f"All {total} filters"
    n_columns = math.ceil(math.sqrt(len(images) * 1.6))
    top = largest_shown(images)
    sheet = _colored(images, size, n_columns, top)
    figure = new_figure(7.6, min(12.0, 6.8 * sheet.shape[0] / sheet.shape[1] + 0.4))
    axes = picture(figure, 1, 1, 1, title=title)
    axes.imshow(sheet.numpy(), interpolation="nearest")
    if size[0] == 1:
        colorbar(figure, axes, ScalarMappable(Normalize(-top, top), DIVERGING), "weight")
    return figure


def _colored(images: Tensor, size: tuple[int, int, int], n_columns: int, top: float) -> Tensor:
    """Return the mosaic of signed images: one channel through the diverging color map, three as they are."""
    if size[0] == 3:
        return mosaic(images, size, n_columns, limits=(-top, top))
    shade = colormaps[DIVERGING]((images.cpu().float().numpy() / top + 1) / 2)[..., :3]
    colored = torch.from_numpy(shade).permute(0, 2, 1)
    return mosaic(colored, (3, *size[1:]), n_columns, limits=(0.0, 1.0))


def weight_heatmap(model: nn.Module, names: Sequence[str] = ()) -> Figure:
    """Return W as a heat map: one row a visible value, with its name, one column a hidden unit, the largest first."""
    weight = data_weight(model).flatten(1)
    weight = weight[:, weight.norm(dim=0).argsort(descending=True)]
    n_rows = len(weight)
    figure = new_figure(7.6, min(10.0, max(2.4, 0.22 * n_rows + 1.0)))
    axes = chart(figure, 1, 1, 1, title="Weights", x="hidden unit, largest norm first", grid=False)
    top = largest_shown(weight)
    drawn = axes.imshow(
        weight.cpu().numpy(), cmap=DIVERGING, vmin=-top, vmax=top, aspect="auto", interpolation="nearest"
    )
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    colorbar(figure, axes, drawn, "weight")
    if len(names) == n_rows and n_rows <= 60:
        axes.set_yticks(range(n_rows), list(names), fontsize=7, parse_math=False)
    else:
        axes.set_ylabel("visible value", fontsize=9)
    return figure
