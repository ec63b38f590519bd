"""Films with known physics: balls that bounce in a box."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.draws import draw_normal, draw_uniform

BOX, RADIUS, SPEED = 10.0, 1.2, 0.5
"""The side of the box, the radius of a ball and its speed at the start, in a frame (Sutskever and Hinton 2007)."""

_N_PARTS = 4  # collisions are looked for so many times a frame


def bouncing_balls(
    n: int, *, n_frames: int = 20, size: int = 15, n_balls: int = 3, generator: torch.Generator | None = None
) -> Tensor:
    """Draw n films `(n, n_frames, size, size)` of balls that bounce off the walls and off each other, as 0/1.

    A pixel is on where its center lies in a ball. Balls start at places drawn uniformly among those without overlap, in
    directions drawn uniformly; collisions are elastic between equal masses.

    >>> bouncing_balls(2, n_frames=5).shape
    torch.Size([2, 5, 15, 15])
    """
    if min(n, n_frames, size, n_balls) < 1 or n_balls > 6:
        raise ValueError(
            f"`n`, `n_frames`, `size` must be at least 1 and `n_balls` in 1..6 to fit the box. "
            f"Got {n}, {n_frames}, {size}, {n_balls}."
        )
    x = _places(n, n_balls, generator)
    direction = draw_normal(torch.empty(n, n_balls, 2, dtype=torch.float64), generator=generator)
    v = SPEED * direction / direction.norm(dim=-1, keepdim=True)
    film = torch.zeros(n, n_frames, size, size, dtype=torch.uint8)
    for t in range(n_frames):
        film[:, t] = rendered(x, size)
        for _ in range(_N_PARTS):
            x, v = moved(x, v, 1 / _N_PARTS)
    return film


def _places(n: int, n_balls: int, generator: torch.Generator | None) -> Tensor:
    """Draw places for the balls, all films again and again until no two balls overlap in any."""
    x = torch.zeros(n, n_balls, 2, dtype=torch.float64)
    left = torch.arange(n)
    while len(left):
        drawn = draw_uniform(torch.empty(len(left), n_balls, 2, dtype=torch.float64), generator=generator)
        x[left] = RADIUS + (BOX - 2 * RADIUS) * drawn
        apart = torch.cdist(x[left], x[left]) + torch.eye(n_balls, dtype=torch.float64) * BOX
        left = left[(apart < 2 * RADIUS).flatten(1).any(1)]
    return x


def moved(x: Tensor, v: Tensor, time: float) -> tuple[Tensor, Tensor]:
    """Return places and velocities a moment later: walls turn a component, two balls trade that along their line."""
    x = x + time * v
    v = torch.where((x < RADIUS) & (v < 0) | (x > BOX - RADIUS) & (v > 0), -v, v)
    for i in range(x.shape[1]):
        for j in range(i):
            line = x[:, i] - x[:, j]
            distance = line.norm(dim=-1, keepdim=True)
            normal = line / distance.clamp_min(1e-12)
            closing = ((v[:, i] - v[:, j]) * normal).sum(-1, keepdim=True)
            trade = torch.where((distance < 2 * RADIUS) & (closing < 0), closing, 0.0) * normal
            v = v.clone()
            v[:, i] -= trade
            v[:, j] += trade
    return x, v


def rendered(x: Tensor, size: int) -> Tensor:
    """Return frames `(n, size, size)` of balls at places `(n, n_balls, 2)`, as uint8."""
    centers = (torch.arange(size, dtype=torch.float64) + 0.5) * BOX / size
    across = (centers - x[..., 0, None]).square()[..., None, :]
    down = (centers - x[..., 1, None]).square()[..., :, None]
    return ((across + down) <= RADIUS**2).any(1).to(torch.uint8)
