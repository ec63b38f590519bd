"""Weights that shrink."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from harmonium.learning.objectives import Phases
from harmonium.learning.transforms.base import Transform, weights_of
from harmonium.types import gradient


@dataclass
class WeightDecay(Transform):
    """Add `rate · ∂/∂W (½‖W‖²) = rate · W` to the gradient of the weights; biases are left alone.

    >>> WeightDecay(1e-4)
    WeightDecay(rate=0.0001)
    """

    rate: float

    @torch.no_grad()
    def before(self, model: nn.Module, phases: Phases | None) -> None:
        """Add the decay to the gradients of the weights."""
        for weight, _ in weights_of(model):
            gradient(weight).add_(weight, alpha=self.rate)
