"""Pairs of images and their transformation: random dots that are shifted or turned."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.draws import draw_integers, draw_uniform


def shifted_dots(
    n: int, *, size: int = 10, reach: int = 1, density: float = 0.5, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Draw n pairs `(n, 2, size, size)` of random dots and the same dots shifted, with the number of the shift.

    Shifts by -reach..reach pixels down and across are equally likely, row by row `(2 reach + 1)²` of them. What comes
    in at the border is drawn anew (Memisevic and Hinton 2010, section 4.1).

    >>> pairs, shift = shifted_dots(5)
    >>> pairs.shape, int(shift.max()) < 9
    (torch.Size([5, 2, 10, 10]), True)
    """
    _check(n, size, density)
    if not 1 <= reach < size // 2:
        raise ValueError(f"`reach` must be in 1..{size // 2 - 1} to leave dots in sight. Got {reach}.")
    side = 2 * reach + 1
    label = draw_integers(side**2, (n,), generator=generator)
    wide = _dots(n, size + 2 * reach, density, generator)
    rows, columns = label // side, label % side
    window = torch.arange(size)
    at = (window + reach)[None].expand(n, -1)
    down, across = at - (rows - reach)[:, None], at - (columns - reach)[:, None]
    every = torch.arange(n)[:, None, None]
    first = wide[every, at[:, :, None], at[:, None, :]]
    second = wide[every, down[:, :, None], across[:, None, :]]
    return torch.stack([first, second], 1), label


def turned_dots(
    n: int, *, size: int = 10, n_angles: int = 8, density: float = 0.5, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Draw n pairs `(n, 2, size, size)` of random dots and the same dots turned about the center, with the angle.

    Angle k is `2πk/n_angles`; each pixel takes the value at its nearest place before, so that 0 and 1 stay so. Corners
    that come from outside are drawn anew.
    """
    _check(n, size, density)
    if n_angles < 2:
        raise ValueError(f"`n_angles` must be at least 2. Got {n_angles}.")
    label = draw_integers(n_angles, (n,), generator=generator)
    first, fresh = _dots(n, size, density, generator), _dots(n, size, density, generator)
    second = torch.stack([turned(first, 2 * math.pi * k / n_angles, fresh) for k in range(n_angles)])
    return torch.stack([first, second[label, torch.arange(n)]], 1), label


def turned(x: Tensor, angle: float, outside: Tensor) -> Tensor:
    """Return images `(n, size, size)` turned by an angle, by nearest places; what comes from outside is `outside`."""
    size = x.shape[-1]
    center = (size - 1) / 2
    row, column = torch.meshgrid(torch.arange(size) - center, torch.arange(size) - center, indexing="ij")
    from_row = (math.cos(angle) * row - math.sin(angle) * column + center).round().long()
    from_column = (math.sin(angle) * row + math.cos(angle) * column + center).round().long()
    inside = (from_row >= 0) & (from_row < size) & (from_column >= 0) & (from_column < size)
    return torch.where(inside, x[:, from_row.clamp(0, size - 1), from_column.clamp(0, size - 1)], outside)


def _dots(n: int, size: int, density: float, generator: torch.Generator | None) -> Tensor:
    drawn = draw_uniform(torch.empty(n, size, size, dtype=torch.float64), generator=generator)
    return (drawn < density).to(torch.uint8)


def _check(n: int, size: int, density: float) -> None:
    if n < 1 or size < 4 or not 0 < density < 1:
        raise ValueError(
            f"`n` must be at least 1, `size` at least 4 and `density` in (0, 1). Got {n}, {size}, {density}."
        )
