"""Weights that shrink by the same amount, large or small."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from harmonium.learning.objectives import Phases
from harmonium.learning.transforms.base import Transform, weights_of
from harmonium.types import gradient


@dataclass
class L1Decay(Transform):
    """Add `rate · ∂/∂W Σ|W| = rate · sign W` to the gradient of the weights; biases are left alone.

    Weights that the data do not hold up go to zero and stay within a step of it (Hinton's guide 2012, section 10).

    >>> L1Decay(1e-4)
    L1Decay(rate=0.0001)
    """

    rate: float

    @torch.no_grad()
    def before(self, model: nn.Module, phases: Phases | None) -> None:
        """Add the decay to the gradients of the weights."""
        for weight, _ in weights_of(model):
            gradient(weight).add_(weight.sign(), alpha=self.rate)
