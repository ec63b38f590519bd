"""Small squares cut out of images."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.draws import draw_integers


def draw_patches(x: Tensor, n_patches: int, size: int, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw squares of `size` pixels from images `(n, channels, height, width)`: image and place uniform, as they come.

    A convolutional RBM trained on them learns the filters of one trained on whole images, at a cost that does not grow
    with the image (section 3.1 of Coates, Lee and Ng 2011).

    >>> draw_patches(torch.zeros(5, 3, 8, 8), 100, 6).shape
    torch.Size([100, 3, 6, 6])
    """
    if x.ndim != 4:
        raise ValueError(f"`x` must be images (n, channels, height, width). Got {tuple(x.shape)}. Add missing axes.")
    n, _, height, width = x.shape
    if not 1 <= size <= min(height, width) or n_patches < 1:
        raise ValueError(
            f"`size` must be in 1..{min(height, width)} to fit the images and `n_patches` at least 1. "
            f"Got size={size}, n_patches={n_patches}."
        )
    image = draw_integers(n, (n_patches,), generator=generator)
    top = draw_integers(height - size + 1, (n_patches,), generator=generator)
    left = draw_integers(width - size + 1, (n_patches,), generator=generator)
    return x.unfold(2, size, 1).unfold(3, size, 1)[image, :, top, left].contiguous()
