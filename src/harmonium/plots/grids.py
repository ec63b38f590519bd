"""Samples as pictures: grids, chains over time, reconstructions, in-painting."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imsave
from torch import Tensor

from harmonium.plots.style import INK, new_figure, picture
from harmonium.runs.shades import Limits, limits_of

BETWEEN, UNKNOWN = (0.58, 0.62, 0.67), (0.62, 0.80, 0.95)
"""The colors, as red, green and blue, of the gaps between images and of pixels that are not known."""

_GAP = 1
_WIDEST = 16  # images in a row


def image_shape(shape: Sequence[int]) -> tuple[int, int, int]:
    """Return `(channels, height, width)` of images: 1 channel is gray, 3 are red, green and blue.

    >>> image_shape((28, 28))
    (1, 28, 28)
    """
    sizes = tuple(shape)
    full = (1, *sizes) if len(sizes) == 2 else sizes
    if len(full) != 3 or full[0] not in (1, 3):
        raise ValueError(
            f"`shape` must be that of an image: (height, width), (1, height, width) or (3, height, width). "
            f"Got {sizes}. Give the shape that one flat sample should be shown in."
        )
    return full[0], full[1], full[2]


def mosaic(x: Tensor, shape: Sequence[int], n_columns: int, *, limits: Limits | None = None) -> Tensor:
    """Lay `(n, …)` images side by side, row by row: `(height, width, 3)` in [0, 1]; NaN are shown light blue."""
    channels, height, width = image_shape(shape)
    if x.ndim < 2 or math.prod(x.shape[1:]) != channels * height * width:
        raise ValueError(f"`x` must hold images of shape {tuple(shape)}, as (n, …). Got {tuple(x.shape)}.")
    low, high = limits_of(x) if limits is None else limits
    images = x.detach().cpu().float().reshape(-1, channels, height, width)
    unknown = images.isnan().any(1, keepdim=True)
    shown = ((images - low) / (high - low)).clamp(0, 1).expand(-1, 3, -1, -1)
    shown = torch.where(unknown, torch.tensor(UNKNOWN)[:, None, None], shown)
    n_rows = math.ceil(len(images) / n_columns)
    tall, wide = height + _GAP, width + _GAP
    sheet = torch.tensor(BETWEEN).repeat(n_rows * tall - _GAP, n_columns * wide - _GAP, 1)
    for i, image in enumerate(shown):
        row, column = divmod(i, n_columns)
        sheet[row * tall : row * tall + height, column * wide : column * wide + width] = image.permute(1, 2, 0)
    if len(shown) % n_columns:
        sheet[(n_rows - 1) * tall :, len(shown) % n_columns * wide - _GAP :] = 1.0
    return sheet


def sample_grid(
    x: Tensor, shape: Sequence[int], n_columns: int | None = None, *, limits: Limits | None = None, title: str = ""
) -> Figure:
    """Return a grid of the images in `x`, as square as can be unless `n_columns` is given.

    >>> len(sample_grid(torch.zeros(9, 64), (8, 8)).axes[0].images)
    1
    """
    columns = n_columns or math.ceil(math.sqrt(len(x)))
    return _sheet(mosaic(x, shape, columns, limits=limits), title)[0]


def chains_over_time(
    states: Tensor,
    shape: Sequence[int],
    *,
    steps: Sequence[int] | None = None,
    limits: Limits | None = None,
    title: str = "",
) -> Figure:
    """Return one row a chain and one column a time, of `states` `(n_times, n_chains, …)`; `steps` names the columns."""
    n_times = len(states)
    names = range(n_times) if steps is None else steps
    if len(names) != n_times:
        raise ValueError(f"`steps` must name the {n_times} times of `states`. Got {len(names)}.")
    rows = states.transpose(0, 1).flatten(end_dim=1)
    figure, axes = _sheet(mosaic(rows, shape, n_times, limits=limits), title)
    _, _, width = image_shape(shape)
    axes.set_xticks([i * (width + _GAP) + (width - 1) / 2 for i in range(n_times)], [f"{step:,}" for step in names])
    axes.set_xlabel("steps of the chain", fontsize=9, color=INK)
    return figure


def reconstructions(x: Tensor, x_hat: Tensor, shape: Sequence[int], *, limits: Limits | None = None) -> Figure:
    """Return data above what the model makes of them."""
    return _rows({"data": x, "reconstruction": x_hat}, shape, limits_of(x) if limits is None else limits)


def inpainting(
    original: Tensor,
    masked: Tensor,
    filled: Tensor,
    shape: Sequence[int],
    *,
    limits: Limits | None = None,
    n_columns: int | None = None,
) -> Figure:
    """Return the originals, what the model was given (NaN is unknown, shown blue) and what it filled in.

    `filled` is `(n, …)`, or `(n_fills, n, …)` for several fillings of each. `n_columns` are in a row, 16 unless told.
    """
    several = filled if filled.ndim > original.ndim else filled[None]
    rows = {"original": original, "given": masked} | {
        f"filled in{f' {i + 1}' if len(several) > 1 else ''}": fill for i, fill in enumerate(several)
    }
    return _rows(rows, shape, limits_of(original) if limits is None else limits, n_columns or _WIDEST)


def image_rows(rows: Mapping[str, Tensor]) -> Figure:
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
    axes.set_yticks([i * (height + _GAP) + (height - 1) / 2 for i in range(len(rows))], list(rows), parse_math=False)
    return figure


def save_grid(
    x: Tensor,
    shape: Sequence[int],
    path: str | os.PathLike[str],
    *,
    n_columns: int | None = None,
    limits: Limits | None = None,
) -> None:
    """Write the images in `x` as one PNG, each pixel of theirs a square of whole pixels."""
    sheet = mosaic(x, shape, n_columns or math.ceil(math.sqrt(len(x))), limits=limits)
    times = max(1, 800 // max(sheet.shape[:2]))
    large = sheet.repeat_interleave(times, 0).repeat_interleave(times, 1)
    imsave(path, large.numpy(), format="png")


def _rows(rows: dict[str, Tensor], shape: Sequence[int], limits: Limits, widest: int = _WIDEST) -> Figure:
    """Return named rows of images, one below the other; more than `widest` go on in a block of rows below."""
    counts = {len(x) for x in rows.values()}
    if len(counts) != 1:
        raise ValueError(f"All rows must hold the same number of images. Got { {k: len(x) for k, x in rows.items()} }.")
    n = counts.pop()
    n_columns, n_blocks = min(n, widest), -(-n // widest)
    flat = torch.stack([x.reshape(n, -1) for x in rows.values()])
    blank = flat.new_full((len(rows), n_columns * n_blocks - n, flat.shape[-1]), limits[1])
    blocks = torch.cat([flat, blank], 1).unflatten(1, (n_blocks, n_columns)).transpose(0, 1)
    figure, axes = _sheet(mosaic(blocks.flatten(end_dim=2), shape, n_columns, limits=limits), "")
    _, height, _ = image_shape(shape)
    places = range(len(rows) * n_blocks)
    axes.set_yticks([i * (height + _GAP) + (height - 1) / 2 for i in places], list(rows) * n_blocks, parse_math=False)
    return figure


def _sheet(sheet: Tensor, title: str) -> tuple[Figure, Axes]:
    height, width = sheet.shape[:2]
    inches = min(8.0, max(4.0, 0.07 * width))
    figure = new_figure(inches, min(12.0, inches * height / width + 0.3))
    axes = picture(figure, 1, 1, 1, title=title)
    axes.imshow(sheet.numpy(), interpolation="nearest")
    return figure, axes
