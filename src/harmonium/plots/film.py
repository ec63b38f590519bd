"""Films as animated PNG."""

from __future__ import annotations

import io
import math

import torch
from PIL import Image
from torch import Tensor

from harmonium.plots.grids import mosaic
from harmonium.runs.shades import Limits

_SIDE = 640  # pixels, about


def animated(
    films: Tensor, *, limits: Limits | None = None, n_columns: int | None = None, seconds: float = 0.1
) -> bytes:
    """Return films `(n, T, channels, height, width)` side by side as one animated PNG, which plays without end.

    What does not know animations shows the first frame.
    """
    if films.ndim != 5:
        raise ValueError(f"`films` must be (n, n_frames, channels, height, width). Got {tuple(films.shape)}.")
    n, _, *shape = films.shape
    columns = n_columns or math.ceil(math.sqrt(n))
    frames = []
    for frame in films.transpose(0, 1):
        sheet = (mosaic(frame, shape, columns, limits=limits) * 255).round().to(torch.uint8)
        zoom = max(1, _SIDE // max(sheet.shape[:2]))
        frames.append(Image.fromarray(sheet.repeat_interleave(zoom, 0).repeat_interleave(zoom, 1).numpy()))
    buffer = io.BytesIO()
    frames[0].save(
        buffer, "PNG", save_all=True, append_images=frames[1:], duration=round(1000 * seconds), loop=0, optimize=True
    )
    return buffer.getvalue()
