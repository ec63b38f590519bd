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
    found = []
    for _ in range(4 if shared is not None else 0):  # more often than there are sets of rows
        parts = [own.clone(), own.double()]
        shared(parts)
        found.append(torch.cat(parts).tolist())
        parts[0].fill_(-1.0)  # what a worker does to its sum, nobody else sees
    here = SharedSum(n, [own])
    alone = here.join([offer if i else "elsewhere " + offer for i, offer in enumerate(workers.told(here.offer))])
    here.withdraw()
    shared_sum._FOLDER = Path("/nowhere")
    return {"found": found, "apart": not alone, "without": SharedSum.of(n, [own]) is None}


def told(n: int) -> list[str]:
    """Return a text of n letters, or more, that the first worker has, and what is said where these differ."""
    text = "é" * n + str(workers.rank())
    try:
        workers.require_same(text=text)
    except workers.WorkersApartError as error:
        return [workers.from_first(text), str(error)]
    return []
