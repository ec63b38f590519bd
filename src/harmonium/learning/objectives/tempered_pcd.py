"""Persistent chains at several temperatures."""

from __future__ import annotations

from dataclasses import dataclass

from harmonium.learning.objectives.pcd import PCD
from harmonium.samplers import ParallelTempering


@dataclass
class TemperedPCD(PCD):
    """Persistent chains at several temperatures that trade places: parallel tempering as the negative phase.

    >>> TemperedPCD(n_chains=20, betas=(0.0, 0.5, 1.0)).sampler.betas
    (0.0, 0.5, 1.0)
    """

    betas: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sampler = ParallelTempering(betas=tuple(self.betas))
