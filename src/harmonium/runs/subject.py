"""What a report is about: a trained model, the samples that it is shown on, and chains that are run once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from harmonium.data import Data
from harmonium.draws import draw_uniform
from harmonium.models import BoltzmannMachine
from harmonium.models.frozen import frozen
from harmonium.runs.trained import Trained
from harmonium.samplers.sample import starting_points
from harmonium.types import EnergyModel

N_CHAINS = 100

_N_ROWS = 2000


@dataclass(eq=False)
class Subject:
    """A trained model opened for its report. Everything that draws uses `generator`; chains take `n_steps` steps."""

    trained: Trained
    n_steps: int
    generator: torch.Generator

    @property
    def model(self) -> Any:
        """The trained model."""
        return self.trained.model

    @property
    def machine(self) -> BoltzmannMachine | None:
        """The model if it is a Boltzmann machine."""
        return self.model if isinstance(self.model, BoltzmannMachine) else None

    @property
    def data(self) -> Data:
        """The data as the model sees them."""
        return self.trained.data

    @property
    def image(self) -> tuple[int, ...] | None:
        """The shape of the samples if they are images."""
        return self.trained.image

    @cached_property
    def train(self) -> Tensor:
        """Training samples as the model takes them, at most 2,000 of those without missing values."""
        rows = self._rows(self.data.train)
        return rows if self.data.transform is None else self.data.transform(rows, generator=self.generator)

    @cached_property
    def held_out(self) -> tuple[str, Tensor]:
        """Samples that were not trained on, with the name of their split; training ones if there are no others."""
        for name, x in (("test", self.data.test), ("validation", self.data.valid)):
            if x is not None and len(rows := self._rows(x)):
                return name, rows
        return "training", self.train

    @cached_property
    def has_free_energy(self) -> bool:
        """Whether the free energy of the data has a closed form."""
        if not isinstance(self.model, EnergyModel):
            return False
        try:
            self.model.free_energy(self.train[:1])
        except ValueError:  # hidden layers tied to each other cannot be summed out
            return False
        return True

    @cached_property
    def chains(self) -> tuple[list[int], Tensor]:
        """Steps 0, 1, 2, 5, 10 … and the states of `N_CHAINS` chains there (1,000 in the plane)."""
        sampler, n = self.trained.sampler, 1000 if self.trained.plane else N_CHAINS
        known = self.start(n)
        x = starting_points(self.model, n, generator=self.generator) if known is None else known
        wanted = {d * 10**k for k in range(7) for d in (1, 2, 5) if d * 10**k < self.n_steps} | {self.n_steps}
        steps, states = [0], [x]
        with frozen(self.model):
            state = sampler.init(self.model, x, generator=self.generator)
            for i in range(1, self.n_steps + 1):
                state, _ = sampler.step(self.model, state, generator=self.generator)
                if i in wanted:
                    steps.append(i)
                    states.append(sampler.samples(self.model, state).detach())
        return steps, torch.stack(states)

    def start(self, n: int, y: Tensor | None = None) -> Tensor | None:
        """Return where `n` chains start, of classes `y` if given; None leaves it to the model."""
        return self.trained.start(n, y, generator=self.generator)

    def noise(self) -> Tensor:
        """Return training samples with every value dealt anew among them: right one by one, wrong together.

        Where one unit is several values (a one-hot vector), units are drawn from their own fitted law instead.
        """
        units = self.machine.layer(self.machine.data_layer) if self.machine else None
        if units is not None and units.sites != units.shape:
            field = units.fitted_field(self.train).expand(len(self.train), *units.shape)
            return units.sample(field, generator=self.generator).detach()
        flat = self.train.flatten(1)
        order = draw_uniform(flat, generator=self.generator).argsort(0)
        return flat.gather(0, order).reshape(self.train.shape)

    def shown(self, x: Tensor) -> Tensor:
        """Return samples on the scale of the original data, to be shown."""
        return self.trained.restored(x.detach()).cpu().float()

    def _rows(self, x: Tensor) -> Tensor:
        rows = x.reshape(len(x), *self.trained.shape)
        if rows.is_floating_point():
            whole = ~rows.flatten(1).isnan().any(1)  # where no row is, missing values stand at their means
            rows = rows[whole] if bool(whole.any()) else torch.where(rows.isnan(), rows.nanmean(0), rows)
        return rows[:_N_ROWS].to(next(self.model.parameters(), torch.zeros(())))
