"""How probable is the data."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.partition import log_z as estimate_log_z
from harmonium.types import EnergyModel, Estimate

_ROWS = 4096


@torch.no_grad()
def log_likelihood(
    model: EnergyModel,
    x: Tensor,
    *,
    log_z: Estimate | None = None,
    generator: torch.Generator | None = None,
) -> Estimate:
    """Return `log p(x) = -F(x) - log Z` of each sample, in nats (eq. 6.36), with the error and the bounds of log Z.

    Nats of differently binarized data cannot be compared. `log_z` is estimated unless given; `.mean()` averages.
    """
    z = estimate_log_z(model, generator=generator) if log_z is None else log_z
    free = torch.cat([model.free_energy(rows) for rows in x.split(_ROWS)]).double()
    lower, upper = -free - z.upper, -free - z.lower
    return Estimate(-free - z.value, z.error, lower, upper, z.kind, ess=z.ess, trusted=z.trusted, note=z.note)
