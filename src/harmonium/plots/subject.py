"""What a report is about: the model of a run, its data as the model takes them, and samples from its chains."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from harmonium.data import Data
from harmonium.draws import draw_uniform
from harmonium.models import DBN, BoltzmannMachine
from harmonium.models.frozen import frozen
from harmonium.plots.grids import Limits, limits_of
from harmonium.plots.scores import free_energies
from harmonium.samplers import MALA, Gibbs, Sampler
from harmonium.samplers.sample import starting_points

N_CHAINS = 100


class Reportable(Protocol):
    """What a report needs of a run; `harmonium.runs.Run` has it."""

    @property
    def folder(self) -> Path:
        """Where the report and the figures go."""
        ...

    @property
    def config(self) -> Any:
        """The resolved configuration, with `model_dump()`."""
        ...

    def metrics(self) -> list[dict[str, Any]]:
        """The records of the epochs."""
        ...

    def model(self) -> nn.Module:
        """The trained model."""
        ...

    def data(self) -> Data:
        """The data as the model sees them."""
        ...

    def restored(self, x: Tensor) -> Tensor:
        """Samples in the shape and on the scale of the original data."""
        ...

    def evaluation(self) -> dict[str, Any] | None:
        """The scores, or None if there are none yet."""
        ...

    def sampler(self) -> Sampler | None:
        """How the chains of the model run; None stands for the default."""
        ...

    def start(self, n: int, y: Tensor | None = None, *, generator: torch.Generator) -> Tensor | None:
        """Where `n` chains start, of classes `y` if given; None leaves it to the model."""
        ...


@dataclass(eq=False)
class Subject:
    """A run opened for its report. Everything that draws uses `generator`; chains are run once."""

    run: Reportable
    n_steps: int
    generator: torch.Generator
    model: Any = field(init=False)
    data: Data = field(init=False)

    def __post_init__(self) -> None:
        self.model, self.data = self.run.model(), self.run.data()

    @property
    def machine(self) -> BoltzmannMachine | None:
        """The model if it is a Boltzmann machine."""
        return self.model if isinstance(self.model, BoltzmannMachine) else None

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample as the model takes it."""
        if isinstance(self.model, DBN):
            return self.model.visible.shape
        return self.machine.layer(self.machine.data_layer).shape if self.machine else tuple(self.data.shape)

    @cached_property
    def image(self) -> tuple[int, ...] | None:
        """The shape of the samples if they are images."""
        sizes = tuple(self.data.shape)
        if self.data.kind == "table" or len(sizes) not in (2, 3) or (len(sizes) == 3 and sizes[0] not in (1, 3)):
            return None
        return sizes

    @property
    def plane(self) -> bool:
        """Whether the samples are points in the plane."""
        return self.data.kind == "real" and tuple(self.data.shape) == (2,)

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
        if not hasattr(self.model, "free_energy"):
            return False
        try:
            self.model.free_energy(self.train[:1])
        except ValueError:  # hidden layers tied to each other cannot be summed out
            return False
        return True

    @property
    def has_chains(self) -> bool:
        """Whether chains can be started: a machine, or a model that says where."""
        return self.machine is not None or hasattr(self.model, "initial")

    @cached_property
    def chains(self) -> tuple[list[int], Tensor]:
        """Steps 0, 1, 2, 5, 10 … and the states of `N_CHAINS` chains there (1,000 in the plane)."""
        sampler, n = self.sampler, 1000 if self.plane else N_CHAINS
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

    @cached_property
    def sampler(self) -> Sampler:
        """How the chains run: as the run says, else by Gibbs sampling, or MALA for a neural energy."""
        return self.run.sampler() or (Gibbs() if self.machine else MALA())

    def start(self, n: int, y: Tensor | None = None) -> Tensor | None:
        """Return where `n` chains start, of classes `y` if given; None leaves it to the model."""
        return self.run.start(n, y, generator=self.generator)

    @property
    def origin(self) -> str:
        """Where the chains start, in words."""
        if self.machine is not None:
            return "the model's biases alone"
        return "noise" if self.run.start(1, generator=torch.Generator()) is None else "Gaussians fitted to the data"

    def spread(self) -> float | None:
        """Return the standard deviation of log p over held-out samples, that of the free energy, if it is known."""
        _, x = self.held_out
        return free_energies(self.model, x).std().item() if self.has_free_energy and len(x) > 1 else None

    def noise(self) -> Tensor:
        """Return training samples with every value dealt anew among them: right one by one, wrong together.

        Where one unit is several values (a one-hot vector), units are drawn from their own fitted law instead.
        """
        units = self.machine.layer(self.machine.data_layer) if self.machine else None
        if units is not None and units.sites != units.shape:
            field_ = units.fitted_field(self.train).expand(len(self.train), *units.shape)
            return units.sample(field_, generator=self.generator).detach()
        flat = self.train.flatten(1)
        order = draw_uniform(flat, generator=self.generator).argsort(0)
        return flat.gather(0, order).reshape(self.train.shape)

    def shown(self, x: Tensor) -> Tensor:
        """Return samples on the scale of the original data, to be shown."""
        return self.run.restored(x.detach()).cpu().float()

    @cached_property
    def limits(self) -> Limits:
        """What is black and what is white."""
        return limits_of(self.shown(self.train))

    def _rows(self, x: Tensor) -> Tensor:
        like = next(self.model.parameters(), torch.zeros(()))
        rows = x.reshape(len(x), *self.shape)
        if rows.is_floating_point():
            rows = rows[~rows.flatten(1).isnan().any(1)]
        return rows[:2000].to(like)
