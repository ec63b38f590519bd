"""Sums that workers make together, for the tests of shared memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from harmonium import shared_sum, workers
from harmonium.shared_sum import SharedSum


def sums(n: int, few: int) -> dict[str, Any]:
    """Return what a worker gets where rank r has n numbers r, r + 1, …, twice, and how it was without room."""
    shared_sum._FEW = few
    own = torch.arange(n, dtype=torch.float32) + workers.rank()
    shared = SharedSum.of(2 * n, [own, own.double()])
    found = [] if shared is None else [shared([own, own.double()]).tolist() for _ in range(3)]
    if shared is not None:
        shared([own, own.double()]).fill_(-1.0)  # a result is the worker's own
        found.append(shared([own, own.double()]).tolist())
    shared_sum._FOLDER = Path("/nowhere")
    return {"found": found, "without": SharedSum.of(n, [own]) is None}
