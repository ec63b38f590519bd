"""Chains of a path shared out among workers: each carries its own, and all get the ends of all."""

from __future__ import annotations

from torch import Tensor

from harmonium import workers
from harmonium.partition.base import Path
from harmonium.partition.path import PathPoint
from harmonium.workers import Part


def part_of_chains(path: Path, n: int) -> Part | None:
    """Return which of n chains this worker carries; None if all: alone, or where groups of chains start apart."""
    part = workers.part_of(n) if path.n_groups == 1 else None
    return None if part is None or part.repeated else part


def own(path: Path, point: PathPoint, part: Part | None) -> PathPoint:
    """Return where the chains of a part are."""
    if part is None:
        return point
    return path.point({name: part.take(value) for name, value in point.state.items()})


def everyone(path: Path, point: PathPoint, part: Part | None) -> PathPoint:
    """Return where the chains of all workers are."""
    return point if part is None else path.point(workers.gather_all(point.state))


def weights_of_all(log_weights: Tensor, part: Part | None) -> Tensor:
    """Return the log weights of the chains of all workers."""
    return log_weights if part is None else workers.gather(log_weights, lengths=part.counts)
