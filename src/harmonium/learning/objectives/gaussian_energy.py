"""An energy whose law is known, to hold objectives to."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from harmonium.draws import draw_normal
from harmonium.types import State


class GaussianEnergy(nn.Module):
    """`F(x) = ‖x‖²/2s²` in the plane, whose law is `N(0, s²)`; `log s` learns."""

    def __init__(self, std: float) -> None:
        super().__init__()
        self.log_std = nn.Parameter(torch.tensor(math.log(std), dtype=torch.float64))

    def free_energy(self, x: Tensor) -> Tensor:
        """Return `‖x‖²/2s²`."""
        return x.square().sum(-1) / (2 * (2 * self.log_std).exp())

    @property
    def log_z(self) -> float:
        """The logarithm of `∫ e^{-F} = 2π s²`."""
        return math.log(2 * math.pi) + 2 * self.log_std.item()

    def draw(self, n: int, *, generator: torch.Generator | None = None) -> State:
        """Draw a batch, exactly."""
        noise = draw_normal(torch.empty(n, 2, dtype=torch.float64), generator=generator)
        return {"x": noise * self.log_std.detach().exp()}
