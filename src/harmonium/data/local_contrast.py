"""Images freed of local brightness and contrast."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, pad

from harmonium.data.transforms import ROWS


def local_contrast(x: Tensor, size: int = 5, floor: float = 0.03) -> Tensor:
    """Return `(x - m) / √(s² + floor²)`: m and s² are mean and mean square of what is left, in a square around a pixel.

    The square has `size` pixels a side (odd) and takes all channels together; at the border the image is mirrored.
    `floor` is on the scale of the images: contrasts well below it are left small (Jarrett et al. 2009, section 2).

    >>> local_contrast(torch.full((1, 1, 8, 8), 0.7)).abs().max() < 1e-5
    tensor(True)
    """
    if x.ndim != 4 or not x.is_floating_point():
        raise ValueError(
            f"`x` must be floating-point images (n, channels, height, width). Got {x.dtype} {tuple(x.shape)}."
        )
    if size < 1 or size % 2 == 0 or size // 2 >= min(x.shape[2:]) or not floor > 0:
        raise ValueError(
            f"`size` must be odd and below twice the side of the images, `floor` positive. Got {size} and {floor}."
        )
    parts = []
    for part in x.split(ROWS):
        rest = part - _around(part, size)
        parts.append(rest / (_around(rest.square(), size) + floor**2).sqrt())
    return torch.cat(parts)


def _around(x: Tensor, size: int) -> Tensor:
    """Return the mean over the channels and a square around each pixel, `(n, 1, height, width)`."""
    return avg_pool2d(pad(x.mean(1, keepdim=True), (size // 2,) * 4, mode="reflect"), size, stride=1)
