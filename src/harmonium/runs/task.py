"""What a training run learns from, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from harmonium.learning.monitors import Monitor
from harmonium.learning.objectives import Objective


@dataclass(frozen=True, eq=False)
class Task:
    """The data that batches are made of, the objective, and what is watched meanwhile.

    The schedule of the learning rate is gone through once for each of `turns`.
    """

    source: Any
    objective: Objective
    monitors: list[Monitor] = field(default_factory=list)
    validation: Tensor | None = None
    turns: int = 1
