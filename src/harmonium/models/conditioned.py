"""A machine with some of its layers held at values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from harmonium.models.machine import BoltzmannMachine
from harmonium.types import State, Values


class Conditioned(BoltzmannMachine):
    """The law `p(rest | given)` of a machine: some layers are held at values, and what is left is a machine itself.

    The layers that the machine declares as given must be among them; others may be, such as a label. Values are one for
    all samples, `(*shape)`, or one for each, `(*batch, *shape)`. It shares the parameters of the machine, and all that
    works on a machine works on it: chains, free energies, log Z.

    >>> machine = BoltzmannMachine(
    ...     {"past": Bernoulli(3), "now": Bernoulli(3)}, [(("past", "now"), Dense(3, 3))], given=["past"]
    ... )
    >>> exact_log_z(Conditioned(machine, {"past": torch.zeros(3)})).value    # 3 log 2
    2.0794...
    """

    def __init__(self, machine: BoltzmannMachine, given: Mapping[str, Values]) -> None:
        nn.Module.__init__(self)
        self.units = machine.units
        self.machine = machine
        self.graph = machine.graph.with_given(given)
        values = {name: value for name, value in machine.state(given).items() if name in self.graph.given}
        for name, value in values.items():
            self.register_buffer(f"value_{name}", value.detach(), persistent=False)

    @property
    def given(self) -> tuple[str, ...]:
        """Nothing: all conditions have their values."""
        return ()

    @property
    def values(self) -> State:
        """The values of the layers that are held."""
        return {name: self.get_buffer(f"value_{name}") for name in self.graph.given}

    @property
    def is_batched(self) -> bool:
        """Whether there is a value for each sample, and so a law of its own."""
        return any(self.machine.layer(name).batch_shape(value) for name, value in self.values.items())

    def state(self, x: Values | Mapping[str, Values]) -> State:
        """Return `x` as a state with the given values in it."""
        held = self.values
        known = x if isinstance(x, Mapping) else {self.data_layer: x}
        return super().state({**held, **{name: value for name, value in known.items() if name not in held}})

    def statistic(self, layer: str, x: Tensor) -> Tensor:
        """Return what the couplings of the machine see of a layer."""
        return self.machine.statistic(layer, x)

    def field(self, layer: str, state: State, *, partial: bool = False) -> Tensor:
        """Return the field on a layer, that of the given values included."""
        return self.machine.field(layer, self.values | state, partial=partial)

    def lateral(self, layer: str) -> Tensor | None:
        """Return W of the machine: given values do not change how the units of one layer meet."""
        return self.machine.lateral(layer)

    def interaction(self, state: State) -> Tensor:
        """Return `Σ Φ(x)`, the given values included."""
        return self.machine.interaction(self.values | state)

    def add_gradient(
        self, full: State, weight: Tensor | float, present: State | None = None, moments: Sequence[State] = ()
    ) -> None:
        """Add the gradient at a full state and the given values."""
        held = self.values
        super().add_gradient(held | full, weight, None if present is None else held | present, moments)

    def bias_field(self, layer: str) -> Tensor:
        """Return the field that the biases and the given values put on a layer."""
        return self.machine.field(layer, self.values, partial=True).detach()

    @torch.no_grad()
    def rows(self, index: Tensor) -> Conditioned:
        """Return the machine with the values of these rows."""
        values = self.values
        sizes = {name: len(self.machine.layer(name).batch_shape(value)) for name, value in values.items()}
        return Conditioned(self.machine, {n: value[index] if sizes[n] else value for n, value in values.items()})
