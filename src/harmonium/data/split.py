"""Random splits, stratified by label where labels are given."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from harmonium.draws import draw_permutation

THREE_WAYS = (0.8, 0.1, 0.1)
"""Train, valid, test: the split of data that come without one."""


def counts(n: int, fractions: Sequence[float]) -> list[int]:
    """Return how many of `n` samples each part gets: rounded down from the second on, the first takes the rest.

    >>> counts(1797, (0.7, 0.1, 0.2))
    [1259, 179, 359]
    """
    if not fractions or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-6:
        raise ValueError(f"`fractions` must be at least 0 and sum to 1. Got {tuple(fractions)}.")
    rest = [int(n * fraction + 1e-9) for fraction in fractions[1:]]
    return [n - sum(rest), *rest]


def split_indices(
    n: int, fractions: Sequence[float], *, labels: Tensor | None = None, generator: torch.Generator | None = None
) -> tuple[Tensor, ...]:
    """Split 0..n-1 at random into parts of the given fractions; with `labels`, each class is split so.

    >>> [len(part) for part in split_indices(10, (0.8, 0.1, 0.1))]
    [8, 1, 1]
    """
    if labels is None:
        return draw_permutation(n, generator=generator).split(counts(n, fractions))
    parts: list[list[Tensor]] = [[] for _ in fractions]
    for label in labels.unique().tolist():
        members = (labels == label).nonzero().flatten()
        members = members[draw_permutation(len(members), generator=generator)]
        for part, chosen in zip(parts, members.split(counts(len(members), fractions)), strict=True):
            part.append(chosen)
    joined = (torch.cat(part) for part in parts)
    return tuple(part[draw_permutation(len(part), generator=generator)] for part in joined)


def split_each_class(labels: Tensor, per_class: int, *, generator: torch.Generator | None = None) -> tuple[Tensor, ...]:
    """Draw `per_class` of each class to learn from, a fifth of them (at least one) to choose by; the others are tests.

    >>> [len(part) for part in split_each_class(torch.tensor([0] * 40 + [1] * 50), 30)]
    [48, 12, 30]
    """
    n_valid = max(1, per_class // 5)
    sizes = [per_class - n_valid, n_valid]
    parts: list[list[Tensor]] = [[], [], []]
    for label in labels.unique().tolist():
        members = (labels == label).nonzero().flatten()
        members = members[draw_permutation(len(members), generator=generator)]
        for part, chosen in zip(parts, members.split([*sizes, len(members) - per_class]), strict=True):
            part.append(chosen)
    train, valid, test = (torch.cat(part) for part in parts)
    return train[draw_permutation(len(train), generator=generator)], valid, test


def split(x: Tensor, fractions: Sequence[float], *, generator: torch.Generator | None = None) -> tuple[Tensor, ...]:
    """Split the samples of `x` at random into parts of the given fractions.

    >>> train, test = split(torch.arange(10), (0.7, 0.3))
    >>> len(train), len(test)
    (7, 3)
    """
    return tuple(x[part] for part in split_indices(len(x), fractions, generator=generator))
