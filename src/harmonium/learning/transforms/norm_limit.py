"""Weights that stay within bounds."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from harmonium.learning.transforms.base import Transform, weights_of


@dataclass
class NormLimit(Transform):
    """Scale back the weights of each hidden unit whose norm grew beyond `limit`."""

    limit: float

    @torch.no_grad()
    def after(self, model: nn.Module) -> None:
        """Bring the norms of the weights back to the limit."""
        for weight, axis in weights_of(model):
            dims = tuple(d for d in range(weight.ndim) if d != axis % weight.ndim)
            norm = torch.linalg.vector_norm(weight, dim=dims, keepdim=True)
            weight.mul_((self.limit / norm.clamp_min(1e-12)).clamp_max(1.0))
