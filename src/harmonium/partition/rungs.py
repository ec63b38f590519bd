"""Where the rungs of a ladder belong, by what its chains measured."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.partition.schedule import at_equal_lengths

STRIDE = 1.0
"""How far apart two rungs are, in standard deviations of the energy that β scales: about half of the trades happen."""

_FEWEST, _MOST = 4, 512
_EVEN = 0.02  # the share of the length that is spread evenly, against what few chains missed


def rungs(betas: Tensor, length: Tensor, n_least: int = _FEWEST) -> Tensor:
    """Return rungs a stride apart, given the thermodynamic length up to some β."""
    return at_equal_lengths(betas, length, min(_MOST, max(n_least, _strides(length) + 1)))


def rungs_again(betas: Tensor, energy: Tensor) -> Tensor:
    """Return rungs a stride apart, given the mean energies ⟨U⟩ that chains at those there are have measured.

    Neighbors are `d = √((β' - β)(⟨U⟩_β - ⟨U⟩_β'))` apart: d² is the sum of the divergences of the two laws from each
    other, and where U is normal they trade with probability erfc(d/2). It is never less than the thermodynamic length
    `∫ √Var U dβ` between them (Cauchy and Schwarz), so that a gap which hides a transition gets more rungs, round after
    round, until they stand in it. Rates of rejection (Syed et al. 2022) end at one and would not tell how many. Their
    number falls by half of the difference at most, or too few would stand beside a transition that was just found.

    >>> betas = torch.linspace(0, 1, 3, dtype=torch.float64)
    >>> [round(beta, 2) for beta in rungs_again(betas, torch.tensor([0.0, -1.0, -33.0])).tolist()]
    [0.0, 0.53, 0.64, 0.76, 0.88, 1.0]
    """
    gaps = (betas.diff() * (energy[:-1] - energy[1:]).double().clamp(min=0)).sqrt()
    gaps = gaps + _EVEN * gaps.mean() + 1e-12
    length = torch.cat([gaps.new_zeros(1), gaps.cumsum(0)])
    return rungs(betas, length, max(_FEWEST, math.ceil((_strides(length) + 1 + len(betas)) / 2)))


def _strides(length: Tensor) -> int:
    return math.ceil(length[-1].item() / STRIDE)
