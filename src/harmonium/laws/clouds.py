"""Starting points for chains that look like no data at all."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.laws.class_gaussians import ClassGaussians

_JITTER = 1e-3  # keeps the covariance of a smooth field positive definite after rounding


def cloud_starts(
    x: Tensor, *, lengths: tuple[float, ...] = (2.0, 5.0), level: float = -0.3, spread: float = 0.8, floor: float = 0.1
) -> ClassGaussians:
    """Return laws for starts of several kinds, drawn equally often: blurred images, bolder ones, and random clouds.

    Blurred images follow the Gaussian of the images `x`, `(n, channels, height, width)`; bolder ones have twice its
    spread. A cloud is a Gaussian field around `level` with covariance `spread² exp(-r²/2·length²)` between pixels at
    distance r in one channel, one kind for each length. Chains that start at clouds teach an energy about smooth
    pictures that are not data, where starts near the data leave it free.

    >>> from harmonium.laws.clouds import cloud_starts
    >>> cloud_starts(torch.zeros(50, 1, 4, 4)).initial(torch.full((6,), -1)).shape
    torch.Size([6, 1, 4, 4])
    """
    if x.ndim != 4:
        raise ValueError(f"`x` must hold images, (n, channels, height, width). Got {tuple(x.shape)}. Reshape it.")
    blurred = ClassGaussians.fitted(x, torch.zeros(len(x), dtype=torch.int64, device=x.device), floor=floor)
    mean, factor = blurred.mean[0], blurred.factor[0]
    fields = [spread * _field_factor(tuple(mean.shape), length).to(factor) for length in lengths]
    means = [mean, mean, *(torch.full_like(mean, level) for _ in lengths)]
    return ClassGaussians(torch.stack(means), torch.stack([factor, 2 * factor, *fields]))


def _field_factor(shape: tuple[int, ...], length: float) -> Tensor:
    """Return the lower Cholesky factor of `exp(-r²/2·length²)` between pixels, channels apart."""
    n_channels, height, width = shape
    lines = (torch.arange(size, dtype=torch.float64) for size in (height, width))
    places = torch.cartesian_prod(*lines)
    covariance = torch.exp(-torch.cdist(places, places).square() / (2 * length**2))
    one = torch.linalg.cholesky(covariance + _JITTER * torch.eye(len(places), dtype=torch.float64))
    return torch.block_diag(*[one] * n_channels)
