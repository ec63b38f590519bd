"""One class of a joint model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from harmonium.models.jem import JEM


class GivenClass(nn.Module):
    """`p(x | y) ∝ e^{-E(x, y)}`: a view of a joint model whose free energy is the energy of class y.

    y is one class, or a tensor with one for each chain. Made by `JEM.given_class`; shares the parameters.
    """

    def __init__(self, joint: JEM, y: Tensor | int) -> None:
        super().__init__()
        self.joint = joint
        self.y = y

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self.joint.shape

    @property
    def box(self) -> tuple[float, float]:
        """Where chains start."""
        return self.joint.box

    @property
    def base_std(self) -> float | None:
        """The width of the Gaussian base measure, if there is one."""
        return self.joint.base_std

    def free_energy(self, x: Tensor) -> Tensor:
        """Return `E(x, y)`, `(*batch,)`."""
        return self.joint.energy(x, self.y)

    def initial(self, n: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw `n` points to start chains from."""
        return self.joint.initial(n, generator=generator)
