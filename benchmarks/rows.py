"""Made-up rows of every kind of unit, the same in every run."""

from __future__ import annotations

import torch
from torch import Tensor


def generator(seed: int = 0) -> torch.Generator:
    """Return a new generator."""
    return torch.Generator().manual_seed(seed)


def binary_rows(n: int, *shape: int, n_patterns: int = 10) -> Tensor:
    """Return 0/1 rows, uint8: patterns with a tenth of their units flipped."""
    source = generator()
    patterns = torch.randint(2, (n_patterns, *shape), dtype=torch.uint8, generator=source)
    rows = patterns[torch.randint(n_patterns, (n,), generator=source)]
    for part in rows.split(1024):  # in parts: the random numbers of all rows at once would be the peak of memory
        part.bitwise_xor_((torch.rand(part.shape, generator=source) < 0.1).to(torch.uint8))
    return rows


def real_rows(n: int, *shape: int) -> Tensor:
    """Return standard normal rows, float32."""
    return torch.randn(n, *shape, generator=generator())


def one_hot_rows(n: int, n_units: int, n_classes: int) -> Tensor:
    """Return one-hot rows, uint8, `(n, n_units, n_classes)`."""
    index = torch.randint(n_classes, (n, n_units, 1), generator=generator())
    return torch.zeros(n, n_units, n_classes, dtype=torch.uint8).scatter_(-1, index, 1)


def level_rows(n: int, *shape: int, levels: int = 255) -> Tensor:
    """Return rows of levels 0..levels, uint8."""
    return torch.randint(levels + 1, (n, *shape), dtype=torch.uint8, generator=generator())
