"""Learn an energy from the slope of its log density: no samples, no Z."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from harmonium import workers
from harmonium.draws import draw_normal
from harmonium.learning.objectives.base import Case, Objective, data_alone
from harmonium.learning.objectives.gaussian_energy import GaussianEnergy
from harmonium.models import BoltzmannMachine
from harmonium.types import EnergyModel


@dataclass(frozen=True)
class ScoreMatching(Objective):
    """`E[Σ_i ∂s_i/∂x_i + ½‖s(x)‖²]` with the score `s = -∂F/∂x` (Hyvärinen 2005, eq. 4), all derivatives exact.

    Its minimum is the score of the data; Z drops out. An update takes a derivative for each coordinate: for images use
    `SlicedScoreMatching`, one random direction. Data must have a density without hard edges: Gaussian units, networks.

    >>> rbm = RBM(Gaussian(2), Bernoulli(3))
    >>> ScoreMatching().loss(rbm, torch.zeros(4, 2)).shape
    torch.Size([])
    """

    @classmethod
    def examples(cls) -> list[Case]:
        """Return a Gaussian and data of its law."""
        model = GaussianEnergy(0.8)
        return [Case(lambda *, generator: cls(), model, model.draw)]

    def divides(self, model: nn.Module) -> bool:
        """Return True: its loss is a mean over rows."""
        return type(self) is ScoreMatching

    def check(self, model: nn.Module) -> None:
        """Raise unless the data of the model are real."""
        _require_density(model, self)

    def losses(self, model: nn.Module, x: Tensor) -> Tensor:
        """Return `Σ_i ∂s_i/∂x_i + ½‖s(x)‖²` of each sample, differentiable in the parameters."""
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            s = score(model, x).flatten(1)
            total = s.square().sum(1) / 2
            for i in range(s.shape[1]):
                (bend,) = torch.autograd.grad(s[:, i].sum(), x, create_graph=True)
                total = total + bend.flatten(1)[:, i]
        return total

    def loss(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the loss of a batch, differentiable in the parameters."""
        _require_density(model, self)
        return workers.mean(self.losses(model, data_alone(model, batch, self)))


@dataclass(frozen=True)
class DenoisingScoreMatching(Objective):
    """`½ E‖σ s(x + σε) + ε‖²` with the score `s = -∂F/∂x` and `ε ~ N(0, I)` (Vincent 2011, eq. 4 times σ²).

    The minimum is the score of the data smoothed by a Gaussian of width σ, not of the data themselves: the learned
    density has that much more noise.

    >>> model = NeuralEBM(MLP(2))
    >>> DenoisingScoreMatching(sigma=0.1).loss(model, torch.zeros(4, 2)).shape
    torch.Size([])
    """

    sigma: float = 0.1

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise ValueError(f"`sigma` must be positive. Got {self.sigma}. Try a tenth of the width of the data.")

    @classmethod
    def examples(cls) -> list[Case]:
        """Return a Gaussian of variance `v + σ²` for data of variance v: the data, smoothed."""
        std = math.sqrt(0.8**2 + cls.sigma**2)
        return [Case(lambda *, generator: cls(), GaussianEnergy(std), GaussianEnergy(0.8).draw)]

    def divides(self, model: nn.Module) -> bool:
        """Return True: its loss is a mean over rows."""
        return type(self) is DenoisingScoreMatching

    def check(self, model: nn.Module) -> None:
        """Raise unless the data of the model are real."""
        _require_density(model, self)

    def loss(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the loss of a batch, differentiable in the parameters."""
        _require_density(model, self)
        x = data_alone(model, batch, self)
        noise = draw_normal(x, generator=generator)
        return workers.mean((self.sigma * score(model, x + self.sigma * noise) + noise).square().flatten(1).sum(1)) / 2


@dataclass(frozen=True)
class SlicedScoreMatching(Objective):
    """`E[vᵀ ∂(vᵀs(x))/∂x + ½‖s(x)‖²]` over random directions v (Song et al. 2019, eq. 8, the variance-reduced form).

    Its minimum is the score of the data, with no smoothing. Needs a second derivative of the network in one direction,
    and a density without hard edges.

    >>> model = NeuralEBM(MLP(2))
    >>> SlicedScoreMatching().loss(model, torch.zeros(4, 2)).shape
    torch.Size([])
    """

    n_projections: int = 1

    def __post_init__(self) -> None:
        if self.n_projections < 1:
            raise ValueError(f"`n_projections` must be at least 1. Got {self.n_projections}.")

    @classmethod
    def examples(cls) -> list[Case]:
        """Return a Gaussian and data of its law."""
        model = GaussianEnergy(0.8)
        return [Case(lambda *, generator: cls(), model, model.draw)]

    def divides(self, model: nn.Module) -> bool:
        """Return whether each row has one direction."""
        return type(self) is SlicedScoreMatching and self.n_projections == 1

    def check(self, model: nn.Module) -> None:
        """Raise unless the data of the model are real."""
        _require_density(model, self)

    def loss(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the loss of a batch, differentiable in the parameters."""
        _require_density(model, self)
        x = data_alone(model, batch, self).detach().repeat_interleave(self.n_projections, 0).requires_grad_()
        v = draw_normal(x.detach(), generator=generator)
        with torch.enable_grad():
            s = score(model, x)
            (bend,) = torch.autograd.grad((s * v).sum(), x, create_graph=True)
            return workers.mean((bend * v).flatten(1).sum(1) + s.square().flatten(1).sum(1) / 2)


def score(model: nn.Module, x: Tensor) -> Tensor:
    """Return `-∂F/∂x`, differentiable once more in the parameters and in x."""
    point = x if x.requires_grad else x.detach().requires_grad_()
    with torch.enable_grad():
        energy: EnergyModel = model  # type: ignore[assignment]
        (slope,) = torch.autograd.grad(energy.free_energy(point).sum(), point, create_graph=True)
    return -slope


def _require_density(model: nn.Module, objective: Objective) -> None:
    """Raise unless the data of a machine are real; a network is taken at its word."""
    if isinstance(model, BoltzmannMachine) and model.layer(model.data_layer).support != "real":
        raise TypeError(
            f"{type(objective).__name__} needs data with a density, such as Gaussian units. Got "
            f"{model.layer(model.data_layer)!r}. Use RatioMatching, its form for finitely many states."
        )
