"""A field on a group of units that a gate lets through."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn

from harmonium.couplings.base import Coupling, Shapes
from harmonium.types import gradient, weighted_sum, without_gradient


class GroupBias(Coupling):
    """The bilinear form `Φ(h, S) = Σ_j h_j Σ_k D_jk s_jk`: a bias that acts where the gate is open (eq. 6.44).

    >>> GroupBias(100, 5).bias.shape
    torch.Size([100, 5])
    """

    def __init__(self, n_gates: int, width: int) -> None:
        super().__init__()
        self.n_gates, self.width = n_gates, width
        self.bias = nn.Parameter(torch.zeros(n_gates, width))

    @classmethod
    def examples(cls) -> list[tuple[Self, Shapes]]:
        """Return small ones with the shapes of their layers."""
        return [(cls(3, 2), ((3,), (3, 2)))]

    @property
    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The shapes of the gates and of their groups."""
        return (self.n_gates,), (self.n_gates, self.width)

    def gates(self, gate: int, other: int) -> bool:
        """Return that gates meet their own groups only."""
        return (gate, other) == (0, 1)

    def weights(self) -> list[nn.Parameter]:
        """Return nothing: a bias is not decayed."""
        return []

    def field(self, to: int, *others: Tensor) -> Tensor:
        """Return `Σ_k D_jk s_jk` on h, `h_j D_jk` on S."""
        return (others[0] * self.bias).sum(-1) if to == 0 else others[0].unsqueeze(-1) * self.bias

    @without_gradient
    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        """Add `Σ weight · h_j s_jk`."""
        gradient(self.bias).add_(weighted_sum(xs[0].unsqueeze(-1) * xs[1], weight, tuple(self.bias.shape)))
