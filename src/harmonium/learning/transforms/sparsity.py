"""Hidden units that are seldom on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import nn

from harmonium.learning.objectives import Phases
from harmonium.learning.transforms.base import Transform, need_phases
from harmonium.types import State, gradient


@dataclass
class Sparsity(Transform):
    """Push the mean activity q of each hidden unit towards `target`: `∂/∂c` gains `rate · (q - target)`.

    q is a running mean over the positive phases with memory `decay` (section 11 of Hinton's guide, 2012). It acts on
    the biases of all hidden layers, or of `layer` alone.
    """

    sees_phases: ClassVar[bool] = True

    target: float
    rate: float
    decay: float = 0.95
    layer: str | None = None
    activity: State = field(default_factory=dict, repr=False)

    @torch.no_grad()
    def before(self, model: nn.Module, phases: Phases | None) -> None:
        """Add the pressure to the gradients of the hidden biases."""
        machine, both = need_phases(model, phases, "Sparsity")
        for name in both.hidden if self.layer is None else (self.layer,):
            bias = machine.graph.biases.get(name)
            if bias is None:
                raise ValueError(f"Sparsity acts on a bias, and layer {name!r} has none. Add a Bias, or name a layer.")
            now = both.positive[name].flatten(end_dim=-len(bias.shape) - 1).mean(0)
            self.activity[name] = self.decay * self.activity.get(name, now) + (1 - self.decay) * now
            pressure = (self.activity[name] - self.target).sum_to_size(bias.bias.shape)
            gradient(bias.bias).add_(pressure, alpha=self.rate)

    def state_dict(self) -> State:
        """Return the running activity."""
        return dict(self.activity)

    def load_state_dict(self, state: State) -> None:
        """Take up the running activity."""
        self.activity = dict(state)
