"""What reconstructions from each depth of a deep belief network leave out."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.models import DBN

_N_ROWS = 500


@torch.no_grad()
def unexplained(dbn: DBN, x: Tensor, mean: Tensor) -> list[float]:
    """Return `Σ(v - v')² / Σ(v - v̄)²` for v' from depth 1, 2, …: 0 is perfect, 1 no better than the mean image v̄.

    >>> from harmonium.evaluation.unexplained import unexplained
    >>> dbn = DBN.from_spec("dense 4, dense 2", shape=(6,))
    >>> len(unexplained(dbn, torch.eye(6), torch.full((6,), 0.5)))
    2
    """
    errors, total = [0.0] * len(dbn), 0.0
    for rows in x.split(_N_ROWS):
        v = rows.to(dbn[0].weight)
        total += (v.cpu() - mean).square().sum().item()
        for i in range(len(dbn)):
            errors[i] += (dbn.reconstruct(v, i + 1) - v).square().sum().item()
    return [error / max(total, 1e-12) for error in errors]


def mean_sample(x: Tensor) -> Tensor:
    """Return the mean of all samples in float64, some rows at a time: images are stored as small integers.

    >>> from harmonium.evaluation.unexplained import mean_sample
    >>> mean_sample(torch.tensor([[0], [1]], dtype=torch.uint8)).item()
    0.5
    """
    return torch.stack([rows.double().sum(0) for rows in x.split(_N_ROWS)]).sum(0) / len(x)
