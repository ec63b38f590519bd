"""Learn an energy by telling data from noise."""

from __future__ import annotations

import math
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from harmonium.learning.objectives.score_matching import rows
from harmonium.types import EnergyModel


class Noise(Protocol):
    """A normalized law that can be drawn from: `GaussianLaw`, `UniformLaw`, or one of your own."""

    def free_energy(self, x: Tensor) -> Tensor:
        """Return `-log p(x)`, normalized."""
        ...

    def initial(self, n: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw n samples."""
        ...


class NoiseContrastive(nn.Module):
    """`-E_data[ln σ(G(x))] - ν E_noise[ln σ(-G(x))]` with `G = -F(x) - log Z - ln ν p_noise(x)`.

    Noise-contrastive estimation (Gutmann and Hyvärinen 2012, eqs. 5 to 8), a classifier of data and noise.
    `log_z` is a parameter: give the optimizer the parameters of the objective too,
    `Adam([*model.parameters(), *objective.parameters()])`. `ratio` is ν, the number of noise samples for each of the
    data. The estimate is consistent, and best with a noise that resembles the data.

    >>> objective = NoiseContrastive(GaussianLaw(torch.zeros(2)), ratio=2)
    >>> objective(NeuralEBM(MLP(2)), torch.zeros(4, 2)).shape
    torch.Size([])
    """

    def __init__(self, noise: Noise, *, ratio: int = 1) -> None:
        super().__init__()
        if ratio < 1:
            raise ValueError(f"`ratio` must be at least 1. Got {ratio}. It counts noise samples for each of the data.")
        self.noise, self.ratio = noise, ratio
        self.log_z = nn.Parameter(torch.zeros(()))

    def forward(self, model: EnergyModel, batch: Any, *, generator: torch.Generator | None = None) -> Tensor:
        """Return the loss of a batch, differentiable in the parameters; labels are not looked at."""
        x = rows(batch)
        with torch.no_grad():
            other = self.noise.initial(self.ratio * len(x), generator=generator).to(x)
        on_data, on_noise = self._odds(model, x), self._odds(model, other)
        return -logsigmoid(on_data).mean() - self.ratio * logsigmoid(-on_noise).mean()

    def _odds(self, model: EnergyModel, x: Tensor) -> Tensor:
        return self.noise.free_energy(x) - model.free_energy(x) - self.log_z - math.log(self.ratio)
