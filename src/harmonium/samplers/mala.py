"""The Metropolis-adjusted Langevin algorithm."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.draws import draw_normal, draw_uniform
from harmonium.samplers.base import Info, Sampler, data_layer
from harmonium.samplers.gradient import check_continuous, energy_and_slope
from harmonium.types import EnergyModel, State


@dataclass(frozen=True)
class MALA(Sampler):
    """A Langevin step as a proposal, accepted by the rule of Metropolis and Hastings: no bias at any step size α.

    Accept `x' = x - α∂F(x) + √(2α) ε` with probability `min(1, e^{F(x) - F(x')} q(x|x')/q(x'|x))`, where
    `log q(x'|x) = -‖x' - x + α∂F(x)‖²/4α`. Acceptance near 0.57 is best in high dimension (Roberts and Rosenthal 1998).

    >>> MALA(step_size=0.1).exact
    True
    """

    step_size: float = 0.01

    def __post_init__(self) -> None:
        if not self.step_size > 0:
            raise ValueError(f"`step_size` must be positive. Got {self.step_size}. Try 0.01.")

    def init(self, model: EnergyModel, x: Tensor, *, generator: torch.Generator | None = None) -> State:
        """Return chains at `x` with their energy and its slope, which the next step needs."""
        check_continuous(model, "MALA")
        energy, slope = energy_and_slope(model, x)
        return {data_layer(model): x, "energy": energy, "slope": slope}

    def step(self, model: EnergyModel, state: State, *, generator: torch.Generator | None = None) -> tuple[State, Info]:
        """Propose a Langevin step and accept or reject it for each chain."""
        layer, alpha = data_layer(model), self.step_size
        x, energy, slope = state[layer], state["energy"], state["slope"]
        noise = draw_normal(x, generator=generator) * math.sqrt(2 * alpha)
        new = self.hold(layer, x, x - alpha * slope + noise)
        new_energy, new_slope = energy_and_slope(model, new)
        forward = _square(self.hold(layer, torch.zeros_like(x), new - x + alpha * slope), energy)
        backward = _square(self.hold(layer, torch.zeros_like(x), x - new + alpha * new_slope), energy)
        log_ratio = energy - new_energy + (forward - backward) / (4 * alpha)
        accepted = draw_uniform(log_ratio, generator=generator).log() < log_ratio
        wide = accepted.reshape(*accepted.shape, *(1,) * (x.ndim - accepted.ndim))
        carried = {
            layer: torch.where(wide, new, x),
            "energy": torch.where(accepted, new_energy, energy),
            "slope": torch.where(wide, new_slope, slope),
        }
        return carried, {"accepted": accepted}


def _square(x: Tensor, energy: Tensor) -> Tensor:
    return x.square().flatten(energy.ndim).sum(-1) if x.ndim > energy.ndim else x.square()
