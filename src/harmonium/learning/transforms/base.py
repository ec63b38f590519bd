"""What is done to a gradient before the optimizer sees it, and to the parameters after."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from torch import nn

from harmonium.couplings import Coupling
from harmonium.learning.objectives import Phases
from harmonium.models import BoltzmannMachine
from harmonium.models.layers import machine_of
from harmonium.types import State


class Transform(ABC):  # noqa: B024  (both hooks may stay as they are)
    """A change of the gradients before an update (`before`) or of the parameters after it (`after`).

    Both are called inside `torch.no_grad()`.
    """

    sees_phases: ClassVar[bool] = False
    """Whether `before` looks at the phases: they are gathered from all workers for it."""

    def before(self, model: nn.Module, phases: Phases | None) -> None:  # noqa: B027
        """Change the gradients in place."""

    def after(self, model: nn.Module) -> None:  # noqa: B027
        """Change the parameters in place."""

    def state_dict(self) -> State:
        """Return what must survive between updates."""
        return {}

    def load_state_dict(self, state: State) -> None:  # noqa: B027
        """Take it up again."""


def weights_of(model: nn.Module) -> list[tuple[nn.Parameter, int]]:
    """Return the weights that learn, each with the axis that counts the units it leads to.

    Those of a machine are its couplings' own, never a bias or a parameter of units; those of a network, its matrices.
    """
    couplings = [module for module in model.modules() if isinstance(module, Coupling)]
    if not couplings:
        return [(p, 0) for p in model.parameters() if p.ndim >= 2 and p.requires_grad]
    return [(p, coupling.unit_axis) for coupling in couplings for p in coupling.weights() if p.requires_grad]


def need_phases(model: nn.Module, phases: Phases | None, name: str) -> tuple[BoltzmannMachine, Phases]:
    """Return the machine and its phases, or raise: the transform of this name needs both."""
    machine = machine_of(model)
    if phases is None or machine is None:
        raise TypeError(
            f"{name} needs the two phases of a contrastive objective on a Boltzmann machine. Leave it out; for a DBN "
            f"trained by SummedLayers wrap it: EachLayer({name}(...))."
        )
    return machine, phases
