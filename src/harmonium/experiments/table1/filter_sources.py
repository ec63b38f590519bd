"""Where the filters of a network come from: learned, or by one of the controls that a learned one must beat."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.draws import draw_integers, draw_normal, draw_permutation

SOURCES = ("learned", "patches", "k-means", "components", "random")
"""`learned` by a machine of N-level units; `patches` of the training data as they are, at which that machine starts:
the same network before training; `k-means`, the centers of patches; `components`, the principal ones; `random` numbers.
"""

_ROWS = 8192


def unlearned_filters(source: str, y: Tensor, n: int, *, generator: torch.Generator | None = None) -> Tensor:
    """Return n filters of length 1 for the rows of y by a control; of principal components there are as many as axes.

    >>> unlearned_filters("components", torch.eye(3).repeat(2, 1), 5).shape
    torch.Size([3, 3])
    """
    if source == "random":
        return normalized(draw_normal(y.new_empty(n, y.shape[1]), generator=generator))
    if source == "patches":
        return normalized(y[draw_permutation(len(y), generator=generator)[:n]])
    if source == "components":
        centered = y - y.mean(0)
        _, axes = torch.linalg.eigh(centered.mT @ centered / len(y))
        return axes.mT.flip(0)[:n].contiguous()
    if source == "k-means":
        return spherical_means(y, n, generator=generator)
    raise ValueError(f"Filters come from {', '.join(SOURCES)}. Got {source!r}.")


def spherical_means(y: Tensor, n: int, n_rounds: int = 12, *, generator: torch.Generator | None = None) -> Tensor:
    """Return the centers of n clusters of directions (Coates and Ng 2012): rows go to the c with the largest `|cᵀy|`.

    A center is the sum of its rows, each times its `cᵀy`, brought to length 1; one without rows begins anew at a row.
    """
    rows = normalized(y)
    centers = rows[draw_permutation(len(rows), generator=generator)[:n]]
    for _ in range(n_rounds):
        sums, counts = torch.zeros_like(centers), centers.new_zeros(len(centers))
        for part in rows.split(_ROWS):
            product = part @ centers.mT
            nearest = product.abs().argmax(1)
            weight = product.gather(1, nearest[:, None])
            sums.index_add_(0, nearest, part * weight)
            counts.index_add_(0, nearest, torch.ones_like(weight[:, 0]))
        empty = counts == 0
        sums[empty] = rows[draw_integers(len(rows), (int(empty.sum()),), generator=generator)]
        centers = normalized(sums)
    return centers


def normalized(rows: Tensor) -> Tensor:
    """Return rows brought to length 1; those of no length stay."""
    return rows / rows.norm(dim=1, keepdim=True).clamp_min(torch.finfo(rows.dtype).tiny)
