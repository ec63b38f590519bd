"""Contrast: a machine of real data, seen at a scale of its own in each sample."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from harmonium.draws import draw_categorical
from harmonium.models.machine import BoltzmannMachine
from harmonium.models.stored import Stored
from harmonium.types import without_gradient


class ScaleMixture(Stored):
    """`x = z_m u`: u from a machine, and apart from it one of `n_scales` scales, `p(m) = π_m`.

    `p(x) = Σ_m π_m z_m^{-n} p(x/z_m)` over n real values, `F(x) = -log Σ_m π_m z_m^{-n} e^{-F(x/z_m)}`: Z is that of
    the machine, whatever the scales, and the law is proper where its law is. A scale is how much a whole sample varies,
    which hidden units then need not say; with none of them it is the scale mixture of Gaussians (Wainwright and
    Simoncelli 2000). `z_m = low (high/low)^{m/(n_scales - 1)}`, `π = softmax(log_share)`.

    >>> from harmonium.models import ScaleMixture
    >>> mixture = ScaleMixture(SpikeSlabRBM(Gaussian(192), 128), low=0.1, high=3.0)
    >>> x = torch.randn(5, 192)
    >>> mixture.free_energy(x).shape, mixture.scale_probabilities(x).shape, mixture.divided(x).shape
    (torch.Size([5]), torch.Size([5, 16]), torch.Size([5, 192]))
    """

    def __init__(self, machine: BoltzmannMachine, low: float, high: float, n_scales: int = 16) -> None:
        super().__init__()
        units = machine.layer(machine.data_layer)
        if units.support != "real" or machine.given:
            raise TypeError(
                f"`machine` must be a machine of real data without conditions: a value is divided by a scale. Got "
                f"{machine!r}."
            )
        if not (0 < low < high and math.isfinite(high) and n_scales >= 2):
            raise ValueError(
                f"`low` < `high` must be positive and `n_scales` at least 2. Got low={low}, high={high}, "
                f"n_scales={n_scales}. A range from the shortest to the longest sample suits most data."
            )
        self.machine = machine
        self.low, self.high, self.n_scales = low, high, n_scales
        self.log_share = nn.Parameter(torch.zeros(n_scales))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample."""
        return self.machine.layer(self.machine.data_layer).shape

    def scales(self) -> Tensor:
        """Return `z_m`."""
        steps = torch.linspace(0, 1, self.n_scales).to(self.log_share)
        return self.low * (self.high / self.low) ** steps

    def share(self) -> Tensor:
        """Return `π_m`."""
        return self.log_share.softmax(0)

    def log_densities(self, x: Tensor) -> Tensor:
        """Return `log(z_m^{-n} e^{-F(x/z_m)})` of each sample at each scale, `(*batch, n_scales)`."""
        self.machine.layer(self.machine.data_layer).check_shape(x, "x")
        z = self.scales()
        at_scales = x / z.reshape(-1, *(1,) * x.ndim)
        return -self.machine.free_energy(at_scales).movedim(0, -1) - math.prod(self.shape) * z.log()

    def free_energy(self, x: Tensor) -> Tensor:
        """Return `F(x) = -log Σ_m π_m z_m^{-n} e^{-F(x/z_m)}`, `(*batch,)`."""
        return -(self.log_share.log_softmax(0) + self.log_densities(x)).logsumexp(-1)

    def scale_probabilities(self, x: Tensor) -> Tensor:
        """Return `p(m | x) ∝ π_m z_m^{-n} e^{-F(x/z_m)}`, `(*batch, n_scales)`."""
        return (self.log_share.log_softmax(0) + self.log_densities(x)).softmax(-1)

    @without_gradient
    def divided(
        self, x: Tensor, probability: Tensor | None = None, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return `u = x/z_m` with the scale of each sample drawn from `p(m | x)`, which may be known already."""
        return x / self._drawn(self.scale_probabilities(x) if probability is None else probability, generator)

    @without_gradient
    def multiplied(self, u: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Return `x = z_m u` with scales drawn from π: samples of the machine become samples of the mixture."""
        batch = u.shape[: u.ndim - len(self.shape)]
        return u * self._drawn(self.share().expand(*batch, -1), generator)

    def _drawn(self, probability: Tensor, generator: torch.Generator | None) -> Tensor:
        z = draw_categorical(probability, generator=generator) @ self.scales()
        return z.reshape(*z.shape, *(1,) * len(self.shape))

    @torch.no_grad()
    def fit_share(self, x: Tensor, n_steps: int = 100) -> None:
        """Set π to suit data, the machine held: `π ← mean p(m | x)`, the steps of expectation and maximization."""
        densities = self.log_densities(x)
        for _ in range(n_steps):
            mean = (self.log_share.log_softmax(0) + densities).softmax(-1).reshape(-1, self.n_scales).mean(0)
            self.log_share.copy_(mean.clamp_min(torch.finfo(mean.dtype).eps).log())
