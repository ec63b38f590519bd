"""What is not data, and how well a model tells it apart: other data sets and noise, on the scale of the samples."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from harmonium.data import DATASETS, load, scale
from harmonium.draws import draw_uniform
from harmonium.evaluation.ood import auroc, auroc_error, fpr95
from harmonium.evaluation.outlier_scores import outlier_scores
from harmonium.types import EnergyModel

OTHERS = {"mnist": "fashion-mnist", "fashion-mnist": "mnist", "cifar10": "mnist"}
"""The data set that stands for the rest of the world, by the name of the data."""


def outliers(
    x: Tensor,
    name: str,
    *,
    box: tuple[float, float] = (-1.0, 1.0),
    data_dir: str | None = None,
    generator: torch.Generator | None = None,
) -> dict[str, Tensor]:
    """Return sets of as many outliers as there are samples `x` of the data `name`, by names that say what they are.

    The test images of another data set if its files are there (padded and repeated in color where shapes differ),
    noise uniform in the box, and the samples themselves with the values of each in random order.
    """
    found: dict[str, Tensor] = {}
    other_name = OTHERS.get(name)
    if other_name is not None and other_name in DATASETS:
        try:
            other = load(other_name, data_dir=data_dir).test
        except (OSError, ValueError):  # its files are not there
            other = None
        if other is not None and other.ndim == x.ndim:
            found[f"{other_name}{' in color' if x.shape[1] > other.shape[1] else ''}"] = fitted(other[: len(x)], x)
    low, high = box
    found["uniform noise"] = draw_uniform(x, generator=generator).mul_(high - low).add_(low)
    if x[0].numel() > 2:
        flat = x.flatten(1)
        order = draw_uniform(flat, generator=generator).argsort(1)
        found["shuffled pixels" if x.ndim > 2 else "shuffled values"] = flat.gather(1, order).reshape(x.shape)
    return found


def outlier_table(model: EnergyModel, x: Tensor, others: dict[str, Tensor]) -> dict[str, Any]:
    """Return AUROC and FPR at 95 % recall for each set of outliers and each score of `outlier_scores`."""
    inside = outlier_scores(model, x)
    table: dict[str, Any] = {}
    for name, other in others.items():
        outside = outlier_scores(model, other)
        table[name] = {"n": len(other)} | {
            score: {
                "auroc": auroc(inside[score], outside[score]),
                "error": auroc_error(inside[score], outside[score]),
                "fpr95": fpr95(inside[score], outside[score]),
            }
            for score in inside
        }
    return table


def fitted(images: Tensor, like: Tensor) -> Tensor:
    """Return 8-bit images on [-1, 1], padded with black and repeated in color to the shape of others.

    >>> from harmonium.evaluation.outliers import fitted
    >>> fitted(torch.zeros(2, 1, 28, 28, dtype=torch.uint8), torch.zeros(1, 3, 32, 32)).shape
    torch.Size([2, 3, 32, 32])
    """
    x = 2 * scale(images, 255) - 1
    tall, wide = (a - b for a, b in zip(like.shape[-2:], x.shape[-2:], strict=True))
    x = pad(x, (wide // 2, wide - wide // 2, tall // 2, tall - tall // 2), value=-1.0)
    return x.expand(-1, like.shape[1], -1, -1).to(like)
