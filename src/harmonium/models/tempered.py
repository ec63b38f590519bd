"""A machine at another temperature."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from harmonium.models.machine import BoltzmannMachine
from harmonium.types import State, as_state


class Tempered(BoltzmannMachine):
    """The path `E_β(x) = -Σ log μ(x) - β Σ Φ(x) - (1 - β) r·s(x)` from a reference field r (β = 0) to a machine (β = 1).

    Couplings are scaled, base measures are not, so that β = 0 is a proper law for Gaussian units too. `beta` is a number,
    or a tensor that becomes the leading axes of every state: one temperature for each slice.
    """

    def __init__(
        self,
        machine: BoltzmannMachine,
        beta: Tensor | float,
        reference: Tensor | Mapping[str, Tensor] | None = None,
    ) -> None:
        nn.Module.__init__(self)
        self.units = machine.units
        self.terms = machine.terms
        self.machine = machine
        self.beta = torch.as_tensor(beta)
        self.reference: State = {} if reference is None else as_state(reference, machine.data_layer)
        if bool(((self.beta < 0) | (self.beta > 1)).any()):
            raise ValueError(f"`beta` must lie in [0, 1]. Got {self.beta}. It is the inverse temperature.")

    def field(self, layer: str, state: State) -> Tensor:
        """Return `β · field + (1 - β) · r`."""
        return self.temper(layer, self.machine.field(layer, state))

    def temper(self, layer: str, field: Tensor) -> Tensor:
        """Return the field at β from the field of the machine itself."""
        beta = _leading(self.beta, field)
        return beta * field + (1 - beta) * self.reference[layer] if layer in self.reference else beta * field

    def interaction(self, state: State) -> Tensor:
        """Return `β Σ Φ(x) + (1 - β) r·s(x)`."""
        full, base = self.machine.interaction(state), self.reference_interaction(state)
        beta = _leading(self.beta, full)
        return beta * full + (1 - beta) * base

    def reference_interaction(self, state: State) -> Tensor:
        """Return `r·s(x)`, `(*batch,)`."""
        layers = [layer for layer in self.reference if layer in state]
        if not layers:
            return self.machine.interaction(state) * 0.0
        return sum(self.layer(layer).inner(self.reference[layer], state[layer]) for layer in layers)


def _leading(beta: Tensor, x: Tensor) -> Tensor:
    return beta.to(x).reshape(*beta.shape, *(1,) * (x.ndim - beta.ndim))
