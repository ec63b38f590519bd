"""Binary patterns with a law that is known exactly: bars and stripes, and the Ising model on a small torus."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.draws import draw_uniform

CRITICAL_BETA = 0.44068679350977147
"""The critical inverse temperature of the infinite square lattice, `½ log(1 + √2)` (Onsager 1944)."""


def binary_words(n_bits: int) -> Tensor:
    """Return all 2^n words of n bits as uint8, in counting order with the first bit the lowest.

    >>> binary_words(2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    if not 1 <= n_bits <= 20:
        raise ValueError(f"`n_bits` must be in 1..20 to list all words. Got {n_bits}. Use a smaller lattice.")
    return (torch.arange(2**n_bits)[:, None] >> torch.arange(n_bits) & 1).to(torch.uint8)


def bars_and_stripes(size: int = 4) -> tuple[Tensor, Tensor]:
    """Return the patterns `(m, size, size)` and their probabilities: an orientation is chosen by a fair coin, then each
    row (or column) is on by a fair coin (section 43.2 of MacKay 2003).

    There are m = 2^(size + 1) - 2 patterns; all-off and all-on, which both orientations make, are twice as likely as
    the others.

    >>> patterns, probabilities = bars_and_stripes(4)
    >>> len(patterns), float(probabilities.max()), float(probabilities.min())
    (30, 0.0625, 0.03125)
    """
    words = binary_words(size)
    rows = words[:, :, None].expand(-1, -1, size)
    columns = words[:, None, :].expand(-1, size, -1)
    patterns, counts = torch.cat([rows, columns]).unique(dim=0, return_counts=True)
    return patterns, counts.double() / counts.sum()


def ising_law(size: int = 4, beta: float = CRITICAL_BETA) -> tuple[Tensor, Tensor]:
    """Return all states `(2^(size²), size, size)` as 0/1 and their probabilities `exp(β Σ_<ij> s_i s_j) / Z`.

    The spins are s = 2x - 1, on a square torus: every site is tied to its right and lower neighbor, cyclically.
    """
    if not 2 <= size <= 4:
        raise ValueError(f"`size` must be 2, 3 or 4, so that all 2^(size²) states can be listed. Got {size}.")
    states = binary_words(size * size).view(-1, size, size)
    spins = states.to(torch.int8) * 2 - 1
    bonds = (spins * spins.roll(1, 1)).sum((1, 2)) + (spins * spins.roll(1, 2)).sum((1, 2))
    return states, (beta * bonds.double()).softmax(0)


def draw_states(probabilities: Tensor, n: int, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw n indices with the given probabilities, by inversion: the first whose cumulative sum exceeds a uniform."""
    cumulative = probabilities.double().cumsum(0)
    uniform = draw_uniform(torch.empty(n, dtype=torch.float64), generator=generator) * cumulative[-1]
    return torch.searchsorted(cumulative, uniform, right=True).clamp_max(len(probabilities) - 1)


def ising(n: int, *, size: int = 4, beta: float = CRITICAL_BETA, generator: torch.Generator | None = None) -> Tensor:
    """Draw n independent, exact samples `(n, size, size)` of the Ising model, as 0/1 (spins are 2x - 1)."""
    states, probabilities = ising_law(size, beta)
    return states[draw_states(probabilities, n, generator=generator)]
