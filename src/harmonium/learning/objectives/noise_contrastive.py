"""Learn an energy by telling data from noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from harmonium.laws import GaussianLaw, IndependentUnits
from harmonium.learning.objectives.base import Case, Objective, data_alone
from harmonium.learning.objectives.contrastive import draw_exactly, small_machine
from harmonium.learning.objectives.gaussian_energy import GaussianEnergy
from harmonium.models import BoltzmannMachine
from harmonium.models.summation import configurations
from harmonium.types import EnergyModel, State


class Noise(Protocol):
    """A normalized law that can be drawn from: `IndependentUnits`, `GaussianLaw`, `UniformLaw`, one of your own."""

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
    For a machine `NoiseContrastive.of(machine, x)` makes the noise and a first `log_z`.

    >>> objective = NoiseContrastive(GaussianLaw(torch.zeros(2)), ratio=2)
    >>> objective.loss(NeuralEBM(MLP(2)), torch.zeros(4, 2)).shape
    torch.Size([])
    """

    def __init__(self, noise: Noise, *, ratio: int = 1, log_z: float = 0.0) -> None:
        if ratio < 1:
            raise ValueError(f"`ratio` must be at least 1. Got {ratio}. It counts noise samples for each of the data.")
        self.noise, self.ratio = noise, ratio
        self.log_z = nn.Parameter(torch.tensor(log_z, dtype=torch.float64))

    @classmethod
    def of(cls, machine: BoltzmannMachine, x: Tensor, *, ratio: int = 1) -> NoiseContrastive:
        """Return the objective for a machine that is about to learn data x.

        The noise are independent units with the means of the data, `log_z` starts at that of the machine without
        couplings between its layers.
        """
        noise = IndependentUnits.fitted(machine.layer(machine.data_layer), x)
        layers = ((machine.layer(name), machine.bias_field(name)) for name in machine.layers)
        with torch.no_grad():
            log_z = sum(units.total(units.log_partition(field)).item() for units, field in layers)
        return cls(noise, ratio=ratio, log_z=log_z)

    @classmethod
    def examples(cls) -> list[Case]:
        """Return a Gaussian and a small machine, data of their laws, and the right log Z."""
        gauss, machine = GaussianEnergy(0.8), small_machine()
        noise = IndependentUnits(machine.visible, torch.tensor([0.5, -0.5, 1.0, 0.0], dtype=torch.float64))
        with torch.no_grad():
            log_z = (-machine.energy(configurations(machine, ("hidden",), {}))).logsumexp(0).item()
        wide = GaussianLaw(torch.zeros(2, dtype=torch.float64))
        return [
            Case(lambda *, generator: cls(wide, ratio=2, log_z=gauss.log_z), gauss, gauss.draw),
            Case(
                lambda *, generator: cls(noise, log_z=log_z),
                machine,
                partial(draw_exactly, machine, layers=(machine.data_layer,)),
            ),
        ]

    def check(self, model: nn.Module) -> None:
        """Raise unless the noise has the shape of the data."""
        shape = getattr(self.noise, "shape", None)
        if isinstance(model, BoltzmannMachine) and shape not in (None, model.layer(model.data_layer).shape):
            raise ValueError(
                f"The noise has samples of shape {shape}, the data layer {model.layer(model.data_layer)!r} others. "
                "Make the noise of the units themselves: NoiseContrastive.of(machine, x)."
            )

    def loss(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the loss of a batch, differentiable in the parameters."""
        x = data_alone(model, batch, self)
        with torch.no_grad():
            other = self.noise.initial(self.ratio * len(x), generator=generator).to(x)
        return self.data_losses(model, x).mean() + self.noise_losses(model, other).mean()

    def data_losses(self, model: nn.Module, x: Tensor) -> Tensor:
        """Return `-ln σ(G(x))` of each sample of the data."""
        return -logsigmoid(self._odds(model, x))

    def noise_losses(self, model: nn.Module, x: Tensor) -> Tensor:
        """Return `-ν ln σ(-G(x))` of each sample of the noise."""
        return -self.ratio * logsigmoid(-self._odds(model, x))

    def _odds(self, model: nn.Module, x: Tensor) -> Tensor:
        energy: EnergyModel = model  # type: ignore[assignment]
        log_z = self.log_z.to(x)  # itself in double precision: float32 would round away small steps
        return self.noise.free_energy(x) - energy.free_energy(x) - log_z - math.log(self.ratio)

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
