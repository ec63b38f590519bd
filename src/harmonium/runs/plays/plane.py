"""The energy landscape over the plane, and chains on it."""

from __future__ import annotations

import torch

from harmonium.evaluation.free_energies import free_energies
from harmonium.models.layers import data_layer
from harmonium.runs.plays.base import MAX_CHAINS, Move, Play, Seen, Session, count, flag
from harmonium.runs.plays.chains import can_step, start_chains, step_chains
from harmonium.runs.plays.images import to_bytes
from harmonium.runs.trained import Trained

N_GRID, N_POINTS, CUT = 96, 500, 12.0
"""Cells of the landscape on each side, data points that are shown, and how high it is shown, in nats."""

_MARGIN = 0.25


class Plane(Play):
    """`F(x)` over the window of the data, cut 12 nats above its lowest value, with the data and chains on it."""

    name = "plane"
    moving = True

    def suits(self, trained: Trained) -> bool:
        """Return whether the data are points in the plane and the model has a free energy of them."""
        return trained.plane and can_step(trained.model)

    def opening(self, trained: Trained) -> Seen:
        """Return the window and the data."""
        points = trained.restored(trained.data.train[:N_POINTS].float())
        return {"window": window(trained), "data": rounded(points)}

    def watched(self, trained: Trained, session: Session, is_new: bool) -> Move:
        """Return one step, many at the start, on the landscape as it is."""
        return {"steps": 1 if session.state else 50, "landscape": True}

    @torch.no_grad()
    def move(self, trained: Trained, session: Session, move: Move) -> Seen:
        """Return where the chains are after the steps, and with `landscape` the landscape as it is now."""
        n = count(move, "n", 1, MAX_CHAINS, 300)
        layer = data_layer(trained.model)
        if flag(move, "restart") or not session.state or len(session.state[layer]) != n:
            start_chains(trained, session, n, {})
        session.memory["steps"] += step_chains(trained, session, move, clamp={})
        points = trained.restored(session.state[layer])
        seen: Seen = {"points": rounded(points), "steps": session.memory["steps"]}
        if flag(move, "landscape"):
            free = landscape(trained)
            low = free.min().item()
            seen["landscape"] = {"n": N_GRID, "low": low, "cut": CUT, "values": to_bytes(free, (low, low + CUT))}
        return seen


def window(trained: Trained) -> list[float]:
    """Return left, right, bottom and top of what is shown: the data with a quarter of their range on every side."""
    points = trained.restored(trained.data.train.float())
    low, high = points.amin(0), points.amax(0)
    more = _MARGIN * (high - low).clamp_min(1e-6)
    return torch.stack([low - more, high + more], 1).flatten().tolist()


def landscape(trained: Trained) -> torch.Tensor:
    """Return F at the middle of each cell, rows from the top of the window down."""
    left, right, bottom, top = window(trained)
    steps = (torch.arange(N_GRID) + 0.5) / N_GRID
    x, y = left + (right - left) * steps, top + (bottom - top) * steps
    points = torch.stack([x.repeat(N_GRID), y.repeat_interleave(N_GRID)], 1)
    like = next(trained.model.parameters())
    encoded = trained.prepared.encoded(points).reshape(-1, *trained.shape).to(like)
    return free_energies(trained.model, encoded).reshape(N_GRID, N_GRID)


def rounded(points: torch.Tensor) -> list[list[float]]:
    """Return points with as many digits as can be seen."""
    return [[round(x, 4), round(y, 4)] for x, y in points.reshape(-1, 2).tolist()]
