"""A few labels that are known, as many of each class."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.draws import draw_permutation


def known_labels(labels: Tensor, n: int, *, generator: torch.Generator | None = None) -> Tensor:
    """Return the numbers of `n` rows, as many of each class, drawn at random.

    >>> import torch
    >>> from harmonium.data.known_labels import known_labels
    >>> len(known_labels(torch.arange(100) % 10, 20, generator=torch.Generator()))
    20
    """
    classes = labels.unique().tolist()
    if n % len(classes) or min((labels == y).sum().item() for y in classes) < n // len(classes):
        raise ValueError(
            f"`labels` must be a multiple of the {len(classes)} classes, as many of each, and no more than there are. "
            f"Got {n}. Try {10 * len(classes)}."
        )
    order = draw_permutation(len(labels), generator=generator)
    return torch.cat([order[labels[order] == y][: n // len(classes)] for y in classes])
