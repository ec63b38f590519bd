"""Boltzmann machines in general: binary units that all may meet each other, with or without hidden ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from harmonium.couplings import Bias, Coupling, Dense, Symmetric
from harmonium.data import Data
from harmonium.inference import ClampedChains
from harmonium.learning.objectives import CD, PCD, TemperedPCD
from harmonium.learning.starts import initialize
from harmonium.models import BoltzmannMachine
from harmonium.runs.kinds.base import Kind, PanelMaker
from harmonium.runs.panels import Heatmap, ImageGrid, Panel, Shown
from harmonium.runs.settings import Config, Section
from harmonium.runs.subject import Subject
from harmonium.runs.task import Task
from harmonium.runs.values import Prepared
from harmonium.units import Bernoulli, Units

_N_SHOWN = 40
_FEW = 8  # hidden units tied to each other that are counted one configuration at a time


class BoltzmannSettings(Section):
    """Who meets whom: the visible units each other always, `units` hidden ones, and these each other if `tied`."""

    units: int = Field(default=0, ge=0, description="Hidden units of a Boltzmann machine; 0 is none.")
    tied: bool = Field(default=False, description="Tie the hidden units to each other, too.")


class BoltzmannKind(Kind[BoltzmannSettings]):
    """A stochastic Hopfield network, with hidden units if wanted (Ackley, Hinton and Sejnowski 1985)."""

    name = "boltzmann"
    summary = "Boltzmann machine whose visible units meet each other, with or without hidden ones"
    settings = BoltzmannSettings
    takes: ClassVar[tuple[str, ...]] = ("binary", "levels")
    unread = ("data.standardize", "model.n_hidden", "model.hidden", "model.options")
    recipes: ClassVar[Mapping[str, dict[str, Any]]] = {
        "bars-and-stripes": {
            "training": {
                "objective": "exact",
                "epochs": 500,
                "batch_size": 1024,
                "optimizer": "adam",
                "learning_rate": 0.05,
                "schedule": "linear",
                "track_likelihood": False,
            },
            "boltzmann": {"units": 8},
            "run": {"threads": 1},
        },
        "*": {
            "training": {
                "n_chains": 100,
                "epochs": 30,
                "optimizer": "adam",
                "learning_rate": 0.005,
                "schedule": "linear",
                "track_likelihood": False,
            },
            "run": {"threads": 1, "ais_betas": 500, "ais_chains": 200},
        },
    }

    def values(self, config: Config, data: Data) -> Prepared:
        """Return values 0 and 1."""
        if data.kind != "binary" or config.data.binarize == "scale":
            raise ValueError(
                f"A Boltzmann machine has binary units. {data.name} holds {data.note.split(';')[0]}, and binarize is "
                f"{config.data.binarize}. Choose --binarize threshold, sample or resample."
            )
        return Prepared(data)

    def build(self, config: Config, data: Data, *, generator: torch.Generator) -> BoltzmannMachine:
        """Return the machine, its biases fitted to the training split."""
        own, n = self.own(config), math.prod(data.shape)
        units: dict[str, Units] = {"visible": Bernoulli(n)}
        terms: list[tuple[tuple[str, ...], Coupling]] = [(("visible", "visible"), Symmetric(n))]
        if own.units:
            units["hidden"] = Bernoulli(own.units)
            terms.append((("visible", "hidden"), Dense(n, own.units, generator=generator)))
        if own.units and own.tied:
            terms.append((("hidden", "hidden"), Symmetric(own.units)))
        machine = BoltzmannMachine(units, [*terms, *(((name,), Bias(layer.shape)) for name, layer in units.items())])
        rows = data.train[:10_000].reshape(-1, n)
        initialize(machine, rows if data.transform is None else data.transform(rows, generator=generator))
        return machine

    def task(self, config: Config, prepared: Prepared, model: Any, *, generator: torch.Generator) -> Task:
        """Return what any machine learns by; many hidden units tied to each other are drawn by clamped chains."""
        task, own = super().task(config, prepared, model, generator=generator), self.own(config)
        if own.tied and own.units > _FEW and isinstance(task.objective, CD | PCD | TemperedPCD):
            task.objective.inference = ClampedChains(persistent=True)
        return task

    def size(self, config: Config) -> str:
        """Return the number of hidden units."""
        return f"{self.own(config).units} hidden"

    def sections(self) -> tuple[str | PanelMaker, ...]:
        """Return what any machine shows, and its couplings."""
        return "learning", "samples", self.meeting, "inpainting", "energies", "parameters"

    def meeting(self, subject: Subject) -> Panel:
        """Return the couplings within the visible layer."""
        machine: BoltzmannMachine = subject.model
        tie = next(coupling for _, coupling in machine.terms if isinstance(coupling, Symmetric))
        caption = "W between the visible units, in the order of the data; zero on the diagonal."
        pictures: list[Shown] = [
            Heatmap("couplings", caption, tie.matrix().detach(), "", "visible unit", "visible unit")
        ]
        if subject.image is not None:
            told = "units most tied to others, each as an image of what it does to them"
            pictures.append(_images("ties", told, tie.matrix().detach(), subject.image))
            dense = [coupling.weight.detach().t() for _, coupling in machine.terms if isinstance(coupling, Dense)]
            told = "hidden units with the longest weights, each as an image of what it does to the visible ones"
            pictures += [_images("hidden", told, weight, subject.image) for weight in dense]
        return Panel("Couplings", "Who acts on whom.", pictures)


def _images(name: str, told: str, rows: Tensor, image: tuple[int, ...]) -> ImageGrid:
    """Return the longest rows of weights as images on one scale."""
    longest = rows.norm(dim=1).topk(min(_N_SHOWN, len(rows))).indices
    top = rows[longest].abs().amax().item() or 1.0
    caption = f"The {len(longest)} {told}: white together, black apart, gray zero; on one scale."
    return ImageGrid(name, caption, rows[longest].reshape(-1, *image), _N_SHOWN // 2, (-top, top))
