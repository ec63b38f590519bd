"""Learn an energy by telling data from noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from harmonium.laws import GaussianLaw
from harmonium.learning.objectives.base import Case, Objective, data_alone
from harmonium.learning.objectives.gaussian_energy import GaussianEnergy
from harmonium.types import EnergyModel, State


class Noise(Protocol):
    """A normalized law that can be drawn from: `GaussianLaw`, `UniformLaw`, or one of your own."""

    def free_energy(self, x: Tensor) -> Tensor:
        """Return `-log p(x)`, normalized."""
        ...

    def initial(self, n: int, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw n samples."""
        ...


class NoiseContrastive(Objective):
    """`-E_data[ln σ(G(x))] - ν E_noise[ln σ(-G(x))]` with `G = -F(x) - log Z - ln ν p_noise(x)`.

    Noise-contrastive estimation (Gutmann and Hyvärinen 2012, eqs. 5 to 8), a classifier of data and noise.
    `log_z` is a parameter: give the optimizer the parameters of the objective too,
    `Adam([*model.parameters(), *objective.parameters()])`; without an optimizer `fit` does so. `ratio` is ν, the number
    of noise samples for each of the data. The estimate is consistent, and best with a noise that resembles the data.

    >>> objective = NoiseContrastive(GaussianLaw(torch.zeros(2)), ratio=2)
    >>> objective.loss(NeuralEBM(MLP(2)), torch.zeros(4, 2)).shape
    torch.Size([])
    """

    def __init__(self, noise: Noise, *, ratio: int = 1) -> None:
        if ratio < 1:
            raise ValueError(f"`ratio` must be at least 1. Got {ratio}. It counts noise samples for each of the data.")
        self.noise, self.ratio = noise, ratio
        self.log_z = nn.Parameter(torch.zeros(()))

    @classmethod
    def examples(cls) -> list[Case]:
        """Return a Gaussian, data of its law, and the right log Z."""
        model = GaussianEnergy(0.8)

        def objective(*, generator: torch.Generator | None = None) -> NoiseContrastive:
            made = cls(GaussianLaw(torch.zeros(2, dtype=torch.float64)), ratio=2)
            made.log_z = nn.Parameter(torch.tensor(model.log_z, dtype=torch.float64))
            return made

        return [Case(objective, model, model.draw)]

    def loss(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the loss of a batch, differentiable in the parameters."""
        x = data_alone(model, batch, self)
        with torch.no_grad():
            other = self.noise.initial(self.ratio * len(x), generator=generator).to(x)
        on_data, on_noise = self._odds(model, x), self._odds(model, other)
        return -logsigmoid(on_data).mean() - self.ratio * logsigmoid(-on_noise).mean()

    def _odds(self, model: nn.Module, x: Tensor) -> Tensor:
        energy: EnergyModel = model  # type: ignore[assignment]
        return self.noise.free_energy(x) - energy.free_energy(x) - self.log_z - math.log(self.ratio)

    def parameters(self) -> Iterator[nn.Parameter]:
        """Return `log_z`."""
        yield self.log_z

    def measured(self) -> dict[str, float]:
        """Return the estimate of log Z."""
        return {"log_z": self.log_z.item()}

    def state_dict(self) -> State:
        """Return `log_z`."""
        return {"log_z": self.log_z.detach()}

    def load_state_dict(self, state: State) -> None:
        """Take `log_z` up again."""
        with torch.no_grad():
            self.log_z.copy_(state["log_z"])
