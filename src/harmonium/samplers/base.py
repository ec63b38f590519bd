"""What a sampler is: a kernel that carries a state from step to step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
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

    clamp: Mapping[str, Tensor | bool] = field(default_factory=dict, kw_only=True)

    @abstractmethod
    def init(self, model: EnergyModel, x: Tensor, *, generator: torch.Generator | None = None) -> State:
        """Return the state of chains that start at `x`."""

    @abstractmethod
    def step(self, model: EnergyModel, state: State, *, generator: torch.Generator | None = None) -> tuple[State, Info]:
        """Make one transition."""

    def samples(self, model: EnergyModel, state: State) -> Tensor:
        """Return the data that the state holds."""
        return state[data_layer(model)]

    def hold(self, layer: str, old: Tensor, new: Tensor) -> Tensor:
        """Return `new` with the clamped units of a layer at their old values."""
        held = self.clamp.get(layer, False)
        if isinstance(held, Tensor):
            return torch.where(held, old, new)
        return old if held else new


def data_layer(model: EnergyModel) -> str:
    """Return the name of the layer that holds the data, `"x"` for a model that is not a Boltzmann machine."""
    return model.data_layer if isinstance(model, BoltzmannMachine) else "x"
