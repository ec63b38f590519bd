"""Persistent chains at several temperatures."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from harmonium.learning.objectives.contrastive import can_divide
from harmonium.learning.objectives.pcd import PCD
from harmonium.samplers import ParallelTempering


@dataclass
class TemperedPCD(PCD):
    """Persistent chains at several temperatures that trade places: parallel tempering as the negative phase.

    >>> TemperedPCD(n_chains=20, betas=(0.0, 0.5, 1.0)).sampler.betas
    (0.0, 0.5, 1.0)
    """

    betas: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

    def divides(self, model: nn.Module) -> bool:
        """Return whether its chains can be divided."""
        return type(self) is TemperedPCD and can_divide(model, self.inference) and self.chain_axis() is not None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sampler = ParallelTempering(betas=tuple(self.betas))
