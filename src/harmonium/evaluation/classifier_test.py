"""How well a classifier tells two samples apart: a two-sample test whose result is a share of right answers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.draws import draw_permutation
from harmonium.evaluation.two_sample import as_points


@dataclass(frozen=True)
class ToldApart:
    """The share of right answers of a classifier with its standard error, over `n` points it has not seen: ½ is chance.

    >>> print(ToldApart(0.512, 0.022, 500))
    51.2 ± 2.2 % of 500
    """

    accuracy: float
    error: float
    n: int

    def __str__(self) -> str:
        return f"{100 * self.accuracy:.1f} ± {100 * self.error:.1f} % of {self.n:,}"


def told_apart(x: Tensor, y: Tensor, *, generator: torch.Generator | None = None) -> ToldApart:
    """Return how often nearest neighbors know which of two samples a point comes from (Lopez-Paz and Oquab 2017).

    As many points are taken of both. One half of each is known, the other is asked about: the majority among the k
    nearest known points, k the odd number next to the root of how many are known, in units of the spread of each value.
    The same law has an accuracy of ½ on average; 1 is told apart always.

    >>> told_apart(torch.zeros(40, 2), torch.ones(40, 2), generator=torch.Generator().manual_seed(0)).accuracy
    1.0
    """
    x, y = as_points(x, y)
    n = min(len(x), len(y)) // 2
    if n < 2:
        raise ValueError(f"Both samples need at least 4 points. Got {len(x)} and {len(y)}. Draw more.")
    parts = [part[draw_permutation(len(part), generator=generator)[: 2 * n].to(part.device)] for part in (x, y)]
    known, asked = (torch.cat([part[half] for part in parts]) for half in (slice(n), slice(n, 2 * n)))
    scale = known.std(0).clamp_min(1e-12)
    nearest = torch.cdist(asked / scale, known / scale).topk(2 * (math.isqrt(2 * n) // 2) + 1, largest=False).indices
    says_second = (nearest >= n).double().mean(1) > 0.5
    right = (says_second == (torch.arange(2 * n, device=x.device) >= n)).double()
    accuracy = right.mean().item()
    return ToldApart(accuracy, math.sqrt(accuracy * (1 - accuracy) / len(right)), len(right))
