"""What an inference is: the hidden layers of a machine, given those that are observed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.types import Filled, State


class Inference(ABC):
    """How hidden layers are filled in for the positive phase of learning.

    `observed` is a state; the layers that it leaves out are hidden.
    """

    exact: ClassVar[bool] = False
    """Whether `free_energy` is F itself; otherwise it is an upper bound, minus the evidence lower bound."""

    @abstractmethod
    def accumulate_grad(
        self,
        machine: BoltzmannMachine,
        observed: State,
        weight: Tensor | float,
        *,
        index: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Filled:
        """Add `Σ_batch weight · ∂F/∂parameters`, or its stand-in, to the gradients; return the state filled in.

        `weight` is a number, or one for each sample; `index` are the numbers of the rows in the data.
        """

    def free_energy(self, machine: BoltzmannMachine, observed: State) -> Tensor:
        """Return `F(observed)`, or an upper bound of it, `(*batch,)`."""
        raise TypeError(f"{self!r} draws hidden layers and has no bound of the free energy. Use MeanField().")

    def state_dict(self) -> State:
        """Return what must survive between updates."""
        return {}

    def load_state_dict(self, state: State) -> None:  # noqa: B027  (a hook: most carry nothing)
        """Take it up again."""
