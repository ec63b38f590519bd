"""From stored values to what a model sees: binarized, dequantized, scaled, standardized, whitened."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.draws import draw_bernoulli, draw_uniform

DESCRIPTIONS: dict[str, str] = {
    "threshold": "binarized by x > levels/2",
    "sample": "binarized once, x ~ Bernoulli(x/levels)",
    "resample": "binarized anew each time, x ~ Bernoulli(x/levels); valid and test sampled once",
    "dequantize": "dequantized, (x + u)/(levels + 1)",
    "scale": "scaled to [0, 1], x/levels",
    "standardize": "standardized, (x - mean)/std of each value",
    "whiten": "ZCA-whitened",
}
"""The line of each transform for `Data.note`, which is printed with every likelihood."""

ROWS = 8192


def largest(x: Tensor, levels: int | None) -> int:
    """Return `levels`, or the one that the dtype implies: 255 for uint8, 1 for floating-point values."""
    if levels is None:
        if x.dtype == torch.uint8:
            return 255
        if x.is_floating_point():
            return 1
        raise ValueError(f"`levels` must be given for {x.dtype} data: the largest value that they can take.")
    if levels < 1:
        raise ValueError(f"`levels` must be at least 1, the largest value of the data. Got {levels}.")
    return levels


def scale(x: Tensor, levels: int | None = None) -> Tensor:
    """Return `x / levels` in [0, 1], as float32 unless `x` is floating-point already; NaN stay NaN.

    >>> scale(torch.tensor([0, 51, 255], dtype=torch.uint8))
    tensor([0.0000, 0.2000, 1.0000])
    """
    top = largest(x, levels)
    y = (x if x.is_floating_point() else x.float()) / top
    low, high = torch.nan_to_num(y, nan=0.0).aminmax() if y.numel() else (torch.zeros(()), torch.zeros(()))
    if low < 0 or high > 1:
        raise ValueError(
            f"`x` must lie in 0..{top}. Got {float(low * top):g}..{float(high * top):g}. Give its true `levels`."
        )
    return y


def binarize(x: Tensor, how: str, *, levels: int | None = None, generator: torch.Generator | None = None) -> Tensor:
    """Return 0/1 values as uint8: `[x > levels/2]` for `"threshold"`, a draw of Bernoulli(x/levels) for `"sample"`.

    >>> binarize(torch.tensor([0, 127, 128, 255], dtype=torch.uint8), "threshold")
    tensor([0, 0, 1, 1], dtype=torch.uint8)
    """
    if how not in ("threshold", "sample"):
        raise ValueError(
            f'`how` must be "threshold" or "sample". Got {how!r}. To resample, use BinarizeEachTime(levels).'
        )
    parts = []
    for part in x.split(ROWS):
        y = scale(part, largest(x, levels))
        if y.isnan().any():
            raise ValueError(
                "`x` has missing values (NaN), which cannot be binarized. Fill them or drop their samples."
            )
        # In double precision, which is PyTorch's work everywhere: a seed gives the same data on every installation.
        parts.append(
            (y > (0.5 if how == "threshold" else draw_uniform(y.double(), generator=generator))).to(torch.uint8)
        )
    return torch.cat(parts)


@dataclass(frozen=True)
class BinarizeEachTime:
    """A transform of batches: each call draws Bernoulli(x/levels) anew, so every epoch sees other binary images.

    >>> BinarizeEachTime(255)(torch.tensor([[0, 255]], dtype=torch.uint8))
    tensor([[0., 1.]])
    """

    levels: int

    @property
    def description(self) -> str:
        """The line for `Data.note`."""
        return DESCRIPTIONS["resample"]

    def __call__(self, batch: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Return a fresh 0/1 draw of the batch, floating-point."""
        return draw_bernoulli(scale(batch, self.levels), generator=generator)


def dequantize(x: Tensor, levels: int | None = None, *, generator: torch.Generator | None = None) -> Tensor:
    """Return `(x + u) / (levels + 1)` with u uniform in [0, 1): a density on [0, 1) whose cells hold the levels' mass.

    A density p on this scale bounds a mass P on the levels: `log P(x) ≥ E_u[log p] - d log(levels + 1)` for d values
    (section 3.1 of Theis, van den Oord and Bethge 2016).
    """
    top = largest(x, levels)
    y = x if x.is_floating_point() else x.float()
    return (y + draw_uniform(y, generator=generator)) / (top + 1)


def standardize(x: Tensor, floor: float = 0.01) -> tuple[Tensor, Tensor, Tensor]:
    """Return `(x - mean) / std`, mean and std, each value of a sample by its own moments over the samples.

    A std below `floor` times the largest is raised to it, so that constant and almost constant values stay small; it is
    1 when all values are constant. Missing values (NaN) are left out of the moments and stay.

    >>> y, mean, std = standardize(torch.tensor([[0.0, 5.0], [2.0, 5.0]]))
    >>> y, mean, std
    (tensor([[-1.,  0.],
            [ 1.,  0.]]), tensor([1., 5.]), tensor([1.0000, 0.0100]))
    """
    y = x if x.is_floating_point() else x.float()
    if bool(y.isinf().any()):
        raise ValueError("`x` must not hold infinite values to be standardized. Replace them, or make them NaN.")
    mean = torch.nan_to_num(y.nanmean(0), nan=0.0)
    std = torch.nan_to_num((y - mean).square().nanmean(0).sqrt(), nan=0.0)
    top = float(std.max())
    std = std.clamp_min(floor * top) if top > 0 else torch.ones_like(std)
    return (y - mean) / std, mean, std


def unstandardize(x: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Return `x · std + mean`, the inverse of `standardize`."""
    return x * std + mean


@dataclass(frozen=True, eq=False)
class Whitening:
    """The symmetric (ZCA) whitening `y = (x - mean) U (Λ + eps)^(-1/2) Uᵀ`, where `U Λ Uᵀ` is the covariance of `x`."""

    mean: Tensor
    matrix: Tensor
    inverse: Tensor
    eps: float

    @property
    def description(self) -> str:
        """The line for `Data.note`."""
        return f"{DESCRIPTIONS['whiten']} (eps {self.eps:g})"

    def apply(self, x: Tensor) -> Tensor:
        """Whiten samples `(n, *shape)`."""
        return ((x - self.mean).flatten(1) @ self.matrix).view(x.shape)

    def invert(self, y: Tensor) -> Tensor:
        """Return the samples whose whitening is `y`."""
        return (y.flatten(1) @ self.inverse).view(y.shape) + self.mean


def whiten(x: Tensor, eps: float = 1e-5) -> Whitening:
    """Fit the ZCA whitening of the samples `x`, computed in float64; `eps` is added to each variance."""
    if eps <= 0:
        raise ValueError(f"`eps` must be positive. Got {eps}.")
    y = x if x.is_floating_point() else x.float()
    if not y.isfinite().all():
        raise ValueError("`x` must be finite to be whitened. Got NaN or infinite values: fill or drop them.")
    mean = y.double().mean(0)
    flat = (y.double() - mean).flatten(1)
    variances, axes = torch.linalg.eigh(flat.mT @ flat / len(flat))
    root = (variances.clamp_min(0) + eps).sqrt()
    return Whitening(mean.to(y), ((axes / root) @ axes.mT).to(y), ((axes * root) @ axes.mT).to(y), eps)
