"""A machine at another temperature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import torch
from torch import Tensor, nn

from harmonium.models.machine import BoltzmannMachine
from harmonium.types import State, Values, as_state


class Tempered(BoltzmannMachine):
    """The path `E_β(x) = -Σ log μ(x) - β Σ Φ(x) - (1 - β) r·s(x)` from a reference field r (β = 0) to a machine.

    Couplings are scaled, base measures are not, so that β = 0 is a proper law for Gaussian units too. `beta` is a
    number, or a tensor that becomes the leading axes of every state: one temperature for each slice.
    """

    def __init__(
        self,
        machine: BoltzmannMachine,
        beta: Tensor | float,
        reference: Tensor | Mapping[str, Tensor] | None = None,
    ) -> None:
        nn.Module.__init__(self)
        self.units = machine.units
        self.graph = machine.graph
        self.machine = machine
        self.beta = beta if isinstance(beta, Tensor) else torch.tensor(beta, dtype=torch.float64)
        self.reference: State = {} if reference is None else as_state(reference, machine.data_layer)
        inside = 0 <= beta <= 1 if isinstance(beta, float) else bool(((self.beta >= 0) & (self.beta <= 1)).all())
        if not inside:
            raise ValueError(f"`beta` must lie in [0, 1]. Got {self.beta}. It is the inverse temperature.")

    def at(self, beta: float) -> Self:
        """Return the same path at another β; a module made anew for each of a thousand costs as much as small layers.

        >>> Tempered(RBM(Bernoulli(3), Bernoulli(2)), 0.5).at(0.2).beta.item()
        0.2
        """
        other = object.__new__(type(self))
        other.__dict__ |= self.__dict__ | {"beta": torch.tensor(beta, dtype=torch.float64)}
        return other

    @property
    def given(self) -> tuple[str, ...]:
        """The layers of the machine that are conditions without a value."""
        return self.machine.given

    def state(self, x: Values | Mapping[str, Values]) -> State:
        """Return `x` as a state of the machine."""
        return self.machine.state(x)

    def statistic(self, layer: str, x: Tensor) -> Tensor:
        """Return what the couplings of the machine see of a layer."""
        return self.machine.statistic(layer, x)

    def bias_field(self, layer: str) -> Tensor:
        """Return the field of the machine's own biases, at β = 1."""
        return self.machine.bias_field(layer)

    def field(self, layer: str, state: State, *, partial: bool = False) -> Tensor:
        """Return `β · field + (1 - β) · r`."""
        return self.temper(layer, self.machine.field(layer, state, partial=partial))

    def temper(self, layer: str, field: Tensor) -> Tensor:
        """Return the field at β from the field of the machine itself."""
        beta = self.beta.item() if self.beta.ndim == 0 else _leading(self.beta, field)
        if layer not in self.reference:
            return field * beta
        return torch.lerp(self.reference[layer].to(field), field, beta)

    def lateral(self, layer: str) -> Tensor | None:
        """Return `β W`, with the temperatures as leading axes."""
        weight = self.machine.lateral(layer)
        return None if weight is None else weight * _leading(self.beta, weight.expand(*self.beta.shape, *weight.shape))

    def interaction(self, state: State) -> Tensor:
        """Return `β Σ Φ(x) + (1 - β) r·s(x)`."""
        full, base = self.machine.interaction(state), self.reference_interaction(state)
        beta = _leading(self.beta, full)
        return beta * full + (1 - beta) * base

    def coupling_weight(self, weight: Tensor | float, state: State) -> Tensor | float:
        """Return β times the weight."""
        like = self.zeros(self.batch_shape(state), state)
        return (_leading(self.beta, like) + like) * weight

    def reference_interaction(self, state: State) -> Tensor:
        """Return `r·s(x)`, `(*batch,)`."""
        total = self.zeros(self.batch_shape(state), state)
        for layer in self.reference:
            if layer in state:
                total = total + self.layer(layer).inner(self.reference[layer], state[layer])
        return total


def _leading(beta: Tensor, x: Tensor) -> Tensor:
    return beta.to(x).reshape((*beta.shape, *(1,) * (x.ndim - beta.ndim)))
