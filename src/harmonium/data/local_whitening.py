"""Whitening by a filter: neighboring pixels of images made uncorrelated."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import conv2d, pad

from harmonium.data.patches import draw_patches
from harmonium.data.transforms import DESCRIPTIONS, ROWS, whiten


@dataclass(frozen=True, eq=False)
class LocalWhitening:
    """The convolution `y = scale · (x - mean) ⋆ Z`: Z are the rows of a ZCA matrix of patches for the central pixel.

    Whole images would need a matrix of all their pixels; since images look alike everywhere, the rows of its matrix are
    one filter a channel, moved from place to place, and small away from the center.
    """

    filters: Tensor
    bias: Tensor
    eps: float

    @property
    def description(self) -> str:
        """The line for `Data.note`."""
        size = self.filters.shape[-1]
        return f"{DESCRIPTIONS['whiten']} by a {size}x{size} filter (eps {self.eps:g})"

    def apply(self, x: Tensor) -> Tensor:
        """Whiten images `(n, channels, height, width)`, mirrored at the border; their size stays."""
        half = self.filters.shape[-1] // 2
        return torch.cat([conv2d(pad(p, (half,) * 4, mode="reflect"), self.filters, self.bias) for p in x.split(ROWS)])


def whiten_locally(
    x: Tensor, size: int = 7, eps: float = 0.1, n_patches: int = 100_000, *, generator: torch.Generator | None = None
) -> LocalWhitening:
    """Fit the whitening filter of images on `n_patches` squares of `size` (odd) pixels; `eps` is added to variances.

    The result has variance 1 over all channels together; channels and neighbors are uncorrelated as far as `eps` lets
    them: it keeps the noise of the finest patterns from being blown up.
    """
    if size % 2 == 0:
        raise ValueError(f"`size` must be odd, to have a central pixel. Got {size}.")
    patches = draw_patches(x, n_patches, size, generator=generator)
    fitted = whiten(patches, eps)
    channels = x.shape[1]
    central = [c * size**2 + size**2 // 2 for c in range(channels)]
    rows = fitted.matrix.t()[central]
    bias = -(rows @ fitted.mean.flatten())
    spread = (patches.flatten(1) @ rows.t() + bias).std()
    return LocalWhitening((rows / spread).reshape(channels, channels, size, size), bias / spread, eps)
