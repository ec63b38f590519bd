"""What a sampler is: a kernel that carries a state from step to step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.models.layers import data_layer
from harmonium.types import EnergyModel, State

Info = dict[str, Any]
"""What a step wants to show (acceptance, swap rates, fields); nothing in it is carried to the next step."""


@dataclass(frozen=True)
class Sampler(ABC):
    """A Markov kernel for a model. The state is carried from step to step; the info is only looked at.

    `clamp` holds units fixed: for each layer True (all of it) or a boolean tensor, True where a unit is held. The one
    layer of a model that is not a Boltzmann machine is called `"x"`.
    """

    exact: ClassVar[bool] = True
    """Whether a step leaves the law of the model invariant."""

    whole: ClassVar[bool] = False
    """Whether its chains hold all layers of a machine; others move the data layer alone."""

    clamp: Mapping[str, Tensor | bool] = field(default_factory=dict, kw_only=True)

    def chain_axis(self) -> int | None:
        """Return the axis of its states that counts chains; None where workers cannot share its chains.

        They can where every draw has the chains along this axis, and no chain looks at another.
        """
        return None

    @classmethod
    def examples(cls) -> list[Self]:
        """Return samplers of this kind, which the contract is held to."""
        return [cls()]

    @abstractmethod
    def init(
        self, model: EnergyModel, x: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> State:
        """Return the state of chains that start at `x`: the data layer, or some layers of a machine by their names."""

    @abstractmethod
    def step(self, model: EnergyModel, state: State, *, generator: torch.Generator | None = None) -> tuple[State, Info]:
        """Make one transition."""

    def samples(self, model: EnergyModel, state: State) -> Tensor:
        """Return the data that the state holds."""
        return state[data_layer(model)]

    def layers(self, model: EnergyModel, state: State) -> State:
        """Return the layers of the model that the state holds, as samples."""
        if not isinstance(model, BoltzmannMachine):
            return {data_layer(model): self.samples(model, state)}
        return {name: state[name] for name in model.layers if name in state}

    def hold(self, layer: str, old: Tensor, new: Tensor) -> Tensor:
        """Return `new` with the clamped units of a layer at their old values."""
        held = self.clamp.get(layer, False)
        if isinstance(held, Tensor):
            return torch.where(held, old, new)
        return old if held else new


def data_of(model: EnergyModel, x: Tensor | Mapping[str, Tensor], sampler: str) -> Tensor:
    """Return the data layer of `x`, for samplers that move it alone, the other layers summed out."""
    if isinstance(x, Tensor):
        return x
    layer = data_layer(model)
    if set(x) != {layer}:
        raise ValueError(f"{sampler} moves layer {layer!r} alone. Got {list(x)}. Give that one, or use Gibbs.")
    return x[layer]
