"""Gradients that stay within bounds."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from harmonium.learning.objectives import Phases
from harmonium.learning.transforms.base import Transform


@dataclass
class ClipGradient(Transform):
    """Scale all gradients so that their joint norm is at most `limit`."""

    limit: float

    def before(self, model: nn.Module, phases: Phases | None) -> None:
        """Clip the gradients."""
        nn.utils.clip_grad_norm_(model.parameters(), self.limit)
