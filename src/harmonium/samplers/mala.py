"""The Metropolis-adjusted Langevin algorithm."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from harmonium.draws import draw_normal, draw_uniform
from harmonium.models.layers import data_layer
from harmonium.samplers.base import Info, Sampler, data_of
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

    @classmethod
    def examples(cls) -> list[Self]:
        """Return steps that suit small machines."""
        return [cls(step_size=0.3)]

    def chain_axis(self) -> int | None:
        """Return 0."""
        return 0

    def init(
        self, model: EnergyModel, x: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> State:
        """Return chains at `x` with their energy and its slope, which the next step needs."""
        check_continuous(model, "MALA")
        x = data_of(model, x, "MALA")
        energy, slope = energy_and_slope(model, x)
        return {data_layer(model): x, "energy": energy, "slope": slope}

    def step(self, model: EnergyModel, state: State, *, generator: torch.Generator | None = None) -> tuple[State, Info]:
        """Propose a Langevin step and accept or reject it for each chain."""
        layer = data_layer(model)
        accepted, x, energy, slope = langevin_move(
            state[layer],
            state["energy"],
            state["slope"],
            lambda new: energy_and_slope(model, new),
            self.step_size,
            hold=(lambda old, new: self.hold(layer, old, new)) if layer in self.clamp else None,
            generator=generator,
        )
        return {layer: x, "energy": energy, "slope": slope}, {"accepted": accepted}


def langevin_move(
    x: Tensor,
    energy: Tensor,
    slope: Tensor,
    evaluate: Callable[[Tensor], tuple[Tensor, Tensor]],
    step_size: float,
    *,
    scale: Tensor | float = 1.0,
    hold: Callable[[Tensor, Tensor], Tensor] | None = None,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Make one step for chains at `x` with their energy and its slope; return what was accepted and where they are.

    `evaluate(x)` gives energies and slopes. Steps are in units of `scale`, one number or one for each coordinate;
    `hold(old, new)` puts fixed coordinates back. Energies that are not finite are never accepted.
    """
    alpha = step_size
    noise = draw_normal(x, generator=generator) * math.sqrt(2 * alpha)
    new = x - alpha * scale**2 * slope + scale * noise
    new = new if hold is None else hold(x, new)
    new_energy, new_slope = evaluate(new)
    there = (new - x) / scale + alpha * scale * slope
    back = (x - new) / scale + alpha * scale * new_slope
    if hold is not None:
        there, back = (hold(torch.zeros_like(x), way) for way in (there, back))
    log_ratio = energy - new_energy + (_square(there, energy) - _square(back, energy)) / (4 * alpha)
    accepted = draw_uniform(log_ratio, generator=generator).log() < log_ratio
    wide = accepted.reshape(*accepted.shape, *(1,) * (x.ndim - accepted.ndim))
    return (
        accepted,
        torch.where(wide, new, x),
        torch.where(accepted, new_energy, energy),
        torch.where(wide, new_slope, slope),
    )


def _square(x: Tensor, energy: Tensor) -> Tensor:
    return x.square().flatten(energy.ndim).sum(-1) if x.ndim > energy.ndim else x.square()
