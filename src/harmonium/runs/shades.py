"""Which values are black and white, or of the full color, where numbers are shown as pictures."""

from __future__ import annotations

from torch import Tensor

Limits = tuple[float, float]
"""The values that are shown black and white."""


def limits_of(x: Tensor) -> Limits:
    """Return the values to show black and white: the range of bounded data, else the 1st and 99th percentile.

    Values in [0, 1] get (0, 1), spins (-1, 1), integers from zero (0, largest).

    >>> limits_of(torch.tensor([0.0, 3.0, 16.0]))
    (0.0, 16.0)
    """
    values = x.detach().double().flatten()
    values = values[values.isfinite()]
    if not len(values):
        return 0.0, 1.0
    low, high = values.min().item(), values.max().item()
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if bool((values.abs() == 1).all()):
        return -1.0, 1.0
    if low >= 0 and bool((values == values.round()).all()):
        return 0.0, high
    ordered = values.sort().values
    low, high = (ordered[round(q * (len(ordered) - 1))].item() for q in (0.01, 0.99))
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def largest_shown(weight: Tensor) -> float:
    """Return the 99.5th percentile of the absolute values: the largest that keeps its own color."""
    ordered = weight.abs().flatten().sort().values
    return ordered[round(0.995 * (len(ordered) - 1))].item() or 1.0
