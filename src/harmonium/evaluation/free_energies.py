"""The free energies of many samples."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.types import EnergyModel

_ROWS = 1024


@torch.no_grad()
def free_energies(model: EnergyModel, x: Tensor) -> Tensor:
    """Return `F(x)` of each sample in float64, on the CPU, a thousand rows at a time."""
    return torch.cat([model.free_energy(rows).double().cpu() for rows in x.split(_ROWS)])
