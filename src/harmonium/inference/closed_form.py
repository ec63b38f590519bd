"""Hidden layers summed out exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from harmonium.inference.base import Inference
from harmonium.models import BoltzmannMachine
from harmonium.types import Filled, State


@dataclass(frozen=True)
class ClosedForm(Inference):
    """The exact means `E[h | v]`, where hidden layers are not tied to each other or few enough to be counted.

    Where they are not, an error names the tied layers.

    >>> ClosedForm().exact
    True
    """

    exact: ClassVar[bool] = True

    def accumulate_grad(
        self,
        machine: BoltzmannMachine,
        observed: State,
        weight: Tensor | float,
        *,
        index: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Filled:
        """Add the gradient of F at the observed layers."""
        return machine.accumulate_grad(observed, weight)

    def free_energy(self, machine: BoltzmannMachine, observed: State) -> Tensor:
        """Return F."""
        return machine.energy(observed)
