"""Where to put the temperatures."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.partition.base import Path

_N_PILOT, _N_PROBES = 64, 100


def adapted_betas(path: Path, n_betas: int, *, generator: torch.Generator | None = None) -> Tensor:
    """Return `n_betas` inverse temperatures from 0 to 1, dense where the law changes fast.

    The weights gain the least variance when the temperatures cut the path into steps of equal thermodynamic length
    (Gelman and Meng 1998).
    """
    return at_equal_lengths(*thermodynamic_length(path, generator=generator), n_betas)


def at_equal_lengths(probes: Tensor, length: Tensor, n_betas: int) -> Tensor:
    """Return `n_betas` inverse temperatures from 0 to 1 that cut a length, known at the probes, into equal parts."""
    targets = torch.linspace(0.0, length[-1].item(), n_betas, dtype=torch.float64)
    right = torch.searchsorted(length, targets).clamp(1, len(probes) - 1)
    share = (targets - length[right - 1]) / (length[right] - length[right - 1])
    betas = probes[right - 1] + share * (probes[right] - probes[right - 1])
    betas[0], betas[-1] = 0.0, 1.0
    return betas


def thermodynamic_length(path: Path, *, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
    """Return evenly spread β and the length `∫ s(β) dβ` up to each, s the spread of `∂ log f_β/∂β`.

    A pilot of few chains measures s. A tenth of it is spread evenly, against what the pilot missed.
    """
    probes = torch.linspace(0.0, 1.0, _N_PROBES, dtype=torch.float64)
    point = path.start(path.n_groups * math.ceil(_N_PILOT / path.n_groups), generator=generator)
    spread = torch.zeros(_N_PROBES, dtype=torch.float64)
    for i, beta in enumerate(probes.tolist()):
        near = beta + 1e-3 if beta < 0.5 else beta - 1e-3
        slope = path.log_ratio(point, beta, near) / 1e-3
        spread[i] = slope.reshape(path.n_groups, -1).var(1).mean().sqrt().item()
        point = path.advance(point, beta, generator=generator)
    if not bool(spread.isfinite().all()):
        raise ValueError(
            "log Z cannot be estimated: the model's energies are not finite. Check its parameters for NaN."
        )
    density = spread + 0.1 * spread.mean() + 1e-12
    steps = (density[1:] + density[:-1]) / 2 * probes.diff()
    return probes, torch.cat([steps.new_zeros(1), steps.cumsum(0)])
