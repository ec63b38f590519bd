"""Parallel tempering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor

from harmonium import workers
from harmonium.draws import draw_uniform
from harmonium.models import BoltzmannMachine, Tempered
from harmonium.models.layers import data_layer
from harmonium.samplers.base import Info, Sampler
from harmonium.samplers.gibbs import Gibbs
from harmonium.samplers.metropolis import Metropolis
from harmonium.types import EnergyModel, State, as_state, without_gradient


@dataclass(frozen=True)
class ParallelTempering(Sampler):
    """Chains at several inverse temperatures that trade places (Desjardins et al. 2010).

    The states have the temperatures as their first axis. After a step of `inner` at each β, neighbors (even pairs, then
    odd pairs) are exchanged with probability `min(1, e^{(β_i - β_j)(U(x_i) - U(x_j))})`, where `U = E_1 - E_0` is the
    energy that β scales. The last β is 1: its chains are the samples. `reference` is the field at β = 0.

    >>> ParallelTempering(betas=(0.0, 0.5, 1.0)).betas
    (0.0, 0.5, 1.0)
    """

    whole = True

    inner: Sampler = field(default_factory=Gibbs)
    betas: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    reference: Tensor | Mapping[str, Tensor] | None = None

    def __post_init__(self) -> None:
        rising = all(low < high for low, high in zip(self.betas, self.betas[1:], strict=False))
        if len(self.betas) < 2 or not rising or self.betas[-1] != 1.0 or self.betas[0] < 0:
            raise ValueError(
                f"`betas` must rise from at least 0 to exactly 1, such as (0.0, 0.5, 1.0). Got {self.betas}."
            )

    @classmethod
    def examples(cls) -> list[Self]:
        """Return a short ladder, and one of another inner sampler."""
        return [cls(betas=(0.0, 0.5, 1.0)), cls(inner=Metropolis(), betas=(0.3, 1.0))]

    def chain_axis(self) -> int | None:
        """Return 1, behind the temperatures, where the inner sampler keeps them apart."""
        return 1 if isinstance(self.inner, Gibbs) else None

    def init(
        self, model: EnergyModel, x: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> State:
        """Return chains that start at `x` at every temperature."""
        machine = _machine(model)
        layers = as_state(x, machine.data_layer)
        ladder = Tempered(machine, self._ladder(next(iter(layers.values()))), self.reference)
        stacks = {name: value.expand(len(self.betas), *value.shape).contiguous() for name, value in layers.items()}
        with workers.along(1):
            return self._inner().init(ladder, stacks, generator=generator)

    @without_gradient
    def step(self, model: EnergyModel, state: State, *, generator: torch.Generator | None = None) -> tuple[State, Info]:
        """Step every chain at its temperature, then trade neighbors."""
        with workers.along(1):
            return self._step(model, state, generator)

    def _step(self, model: EnergyModel, state: State, generator: torch.Generator | None) -> tuple[State, Info]:
        machine = _machine(model)
        some = state[machine.data_layer]
        betas = self._ladder(some)
        ladder = Tempered(machine, betas, self.reference)
        state, _ = self._inner().step(ladder, state, generator=generator)
        layers = {name: state[name] for name in machine.layers if name in state}
        energy = self._energies(machine, betas, layers)
        rates = energy.new_zeros(len(self.betas) - 1)
        for parity in (0, 1):
            low = torch.arange(parity, len(self.betas) - 1, 2, device=some.device)
            if not len(low):
                continue
            high = low + 1
            at = energy.movedim(-1, 1)
            log_ratio = at[low, low] + at[high, high] - at[low, high] - at[high, low]
            swapped = draw_uniform(log_ratio, generator=generator).log() < log_ratio
            layers = {name: _swap(value, low, swapped) for name, value in layers.items()}
            energy = _swap(energy, low, swapped)
            rates[low] = swapped.to(rates).flatten(1).mean(1)
        if len(layers) < len(state):  # what the inner sampler carries besides the layers belongs to one temperature
            layers = self._inner().init(ladder, layers[machine.data_layer], generator=generator)
        return layers, {"swap_rates": rates, "fields": {}}

    def _energies(self, machine: BoltzmannMachine, betas: Tensor, layers: State) -> Tensor:
        """Return `E_β(x)`, up to a constant of x, of the chains of each rung (first axis) at each β (last axis)."""
        if len(layers) == len(machine.layers):  # E_β = E_0 + β (E_1 - E_0): one evaluation serves all
            slope = Tempered(machine, 0.0, self.reference).reference_interaction(layers) - machine.interaction(layers)
            return slope.unsqueeze(-1) * betas
        return torch.stack([Tempered(machine, beta, self.reference).energy(layers) for beta in betas], dim=-1)

    def layers(self, model: EnergyModel, state: State) -> State:
        """Return the layers of the chains at β = 1."""
        return {name: value[-1] for name, value in super().layers(model, state).items()}

    def samples(self, model: EnergyModel, state: State) -> Tensor:
        """Return the chains at β = 1."""
        return state[data_layer(model)][-1]

    def tune(
        self, model: EnergyModel, x: Tensor, *, n_steps: int = 200, generator: torch.Generator | None = None
    ) -> ParallelTempering:
        """Return the sampler with its ladder moved so that all neighbors trade equally often (Syed et al. 2022).

        The share of refused trades, summed up the ladder, measures its length; the new rungs cut it into equal parts.
        """
        state = self.init(model, x, generator=generator)
        total = torch.zeros(len(self.betas) - 1, dtype=torch.float64)
        for _ in range(n_steps):
            state, info = self.step(model, state, generator=generator)
            total += info["swap_rates"].to(total)
        length = torch.cat([total.new_zeros(1), (1 - total / n_steps).clamp_min(1e-3).cumsum(0)])
        rungs = torch.linspace(0.0, length[-1].item(), len(self.betas), dtype=torch.float64)
        old = torch.tensor(self.betas, dtype=torch.float64)
        right = torch.searchsorted(length, rungs[1:-1]).clamp(1, len(old) - 1)
        share = (rungs[1:-1] - length[right - 1]) / (length[right] - length[right - 1])
        inside = old[right - 1] + share * (old[right] - old[right - 1])
        return replace(self, betas=(self.betas[0], *inside.tolist(), 1.0))

    def _inner(self) -> Sampler:
        return replace(self.inner, clamp={**self.inner.clamp, **self.clamp})

    def _ladder(self, like: Tensor) -> Tensor:
        return torch.tensor(self.betas, dtype=like.dtype, device=like.device)


def _machine(model: EnergyModel) -> BoltzmannMachine:
    if not isinstance(model, BoltzmannMachine):
        raise TypeError(f"ParallelTempering needs a BoltzmannMachine. Got {type(model).__name__}. Use MALA.")
    return model


def _swap(x: Tensor, low: Tensor, swapped: Tensor) -> Tensor:
    """Exchange rungs `low` and `low + 1` where `swapped`."""
    wide = swapped.reshape(*swapped.shape, *(1,) * (x.ndim - swapped.ndim))
    lower, upper = x[low], x[low + 1]
    result = x.clone()
    result[low], result[low + 1] = torch.where(wide, upper, lower), torch.where(wide, lower, upper)
    return result
