"""The Metropolis algorithm."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from harmonium.draws import draw_integers, draw_normal, draw_uniform
from harmonium.models import BoltzmannMachine
from harmonium.models.layers import data_layer
from harmonium.samplers.base import Info, Sampler, data_of
from harmonium.types import EnergyModel, State, without_gradient


@dataclass(frozen=True)
class Metropolis(Sampler):
    """Propose a change and accept it with probability `min(1, e^{F(x) - F(x')})` (lecture notes, MCMC).

    The proposal is symmetric: real units move by `step_size` times a normal number, all at once; a unit with finitely
    many states, one a step, goes to another of them; a count goes up or down by one. (The notes keep "it as xᵗ" with
    that probability; it is the proposal that is accepted so.)

    >>> Metropolis(step_size=0.2)
    Metropolis(clamp={}, step_size=0.2)
    """

    step_size: float = 0.5

    def __post_init__(self) -> None:
        if not self.step_size > 0:
            raise ValueError(f"`step_size` must be positive. Got {self.step_size}. Try 0.5.")

    @classmethod
    def examples(cls) -> list[Self]:
        """Return steps that suit small machines."""
        return [cls(), cls(step_size=2.0)]

    def chain_axis(self) -> int | None:
        """Return 0."""
        return 0

    def init(
        self, model: EnergyModel, x: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> State:
        """Return chains at `x` with their free energy."""
        x = data_of(model, x, "Metropolis")
        return {data_layer(model): x, "energy": model.free_energy(x).detach()}

    @without_gradient
    def step(self, model: EnergyModel, state: State, *, generator: torch.Generator | None = None) -> tuple[State, Info]:
        """Propose a change and accept or reject it for each chain."""
        layer = data_layer(model)
        x, energy = state[layer], state["energy"]
        new = self.hold(layer, x, self._propose(model, x, generator))
        new_energy = _free_energy(model, new)
        accepted = draw_uniform(energy, generator=generator).log() < energy - new_energy
        wide = accepted.reshape(*accepted.shape, *(1,) * (x.ndim - accepted.ndim))
        carried = {layer: torch.where(wide, new, x), "energy": torch.where(accepted, new_energy, energy)}
        return carried, {"accepted": accepted}

    def _propose(self, model: EnergyModel, x: Tensor, generator: torch.Generator | None) -> Tensor:
        units = model.layer(model.data_layer) if isinstance(model, BoltzmannMachine) else None
        if units is None or units.support == "real":
            return x + self.step_size * draw_normal(x, generator=generator)
        states = units.states()
        if states is None and units.support != "integer":
            raise TypeError(
                f"Metropolis has no proposal for {units!r}, whose parts differ in kind. Use Gibbs, which has."
            )
        apart = units.split_sites(x)
        rows = apart.reshape(math.prod(units.batch_shape(x)), math.prod(units.sites), -1)
        chain = torch.arange(len(rows), device=x.device)
        site = draw_integers(rows.shape[1], (len(rows),), generator=generator, device=x.device)
        old = rows[chain, site]
        rows = rows.clone()
        if states is None:
            sign = draw_integers(2, (len(rows), 1), generator=generator, device=x.device) * 2 - 1
            rows[chain, site] = old + sign.to(x.dtype)
        else:
            table = states.to(x).reshape(len(states), -1)
            current = (table[None] == old[:, None]).all(-1).to(torch.int64).argmax(-1)
            jump = 1 + draw_integers(len(states) - 1, (len(rows),), generator=generator, device=x.device)
            rows[chain, site] = table[(current + jump) % len(states)]
        return units.join_sites(rows.reshape(apart.shape))


def _free_energy(model: EnergyModel, x: Tensor) -> Tensor:
    if not isinstance(model, BoltzmannMachine):
        return model.free_energy(x)
    # A machine's own energy knows that a count below zero has energy +∞, where `free_energy` would refuse it.
    energy, units = model.energy(x), model.layer(model.data_layer)
    low, high = units.bounds()
    if units.support != "real" or low == -math.inf:
        return energy
    outside = ((x < low) | (x > high)).flatten(x.ndim - len(units.shape)).any(-1)
    return energy.masked_fill(outside, math.inf)
