"""Spike-and-slab RBMs of real data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from harmonium.data import Data
from harmonium.learning.starts import initialize
from harmonium.models import SpikeSlabRBM
from harmonium.runs.kinds.base import Kind, PanelMaker
from harmonium.runs.panels import Histograms, ImageGrid, Panel
from harmonium.runs.settings import Config, Section
from harmonium.runs.subject import Subject
from harmonium.runs.values import Prepared, real_values
from harmonium.units import Gaussian

_N_FILTERS, _START = 96, 0.8
FLOOR = 0.3
"""The smallest σ, on standardized values: spikes widen what σ leaves, and a σ that falls towards 0 stays there."""


class SpikeSlabSettings(Section):
    """The slabs: `model.n_hidden` spikes of `slabs` filters each; `limit` keeps the law proper."""

    slabs: int = Field(default=1, ge=1, description="Slabs that a spike opens.")
    limit: float = Field(default=0.95, gt=0, lt=1)


class SpikeSlabRBMKind(Kind[SpikeSlabSettings]):
    """A spike-and-slab RBM on real values."""

    name = "spike-slab-rbm"
    summary = "RBM of real values whose hidden units free directions to vary"
    settings = SpikeSlabSettings
    unread = ("model.hidden", "model.options", "data.binarize")
    recipes: ClassVar[Mapping[str, dict[str, Any]]] = {
        "*": {
            "model": {"n_hidden": 128},
            "training": {
                "n_chains": 100,
                "epochs": 10,
                "batch_size": 100,
                "optimizer": "adam",
                "learning_rate": 0.002,
                "schedule": "linear",
                "clip": 100.0,
                "track_likelihood": False,
            },
        },
    }

    def values(self, config: Config, data: Data) -> Prepared:
        """Return real values; whitened patches are standardized already but for the last digits."""
        return real_values(data, config.data.standardize)

    def build(self, config: Config, data: Data, *, generator: torch.Generator) -> SpikeSlabRBM:
        """Return the machine with its filters spread out, so that spikes have something to tell from the first update.

        W/σ starts with the largest singular value 0.8: a spike with tiny filters sees nothing.
        """
        own, n = self.own(config), math.prod(data.shape)
        machine = SpikeSlabRBM(
            Gaussian(n, floor=FLOOR), config.model.n_hidden, own.slabs, own.limit, generator=generator
        )
        initialize(machine, data.train[:10_000].reshape(-1, n))
        with torch.no_grad():
            machine.weight.mul_(min(_START, own.limit) / machine.largest_singular_value())
        return machine

    def size(self, config: Config) -> str:
        """Return the number of spikes and of slabs for each."""
        return f"{config.model.n_hidden}×{self.own(config).slabs}"

    def sections(self) -> tuple[str | PanelMaker, ...]:
        """Return the sections of any machine, filters and precisions of its own."""
        return "learning", "samples", "density", self.filters, self.spread, "energies", "parameters"

    def filters(self, subject: Subject) -> Panel | None:
        """Return the largest filters as images."""
        return filter_panel(subject.model, subject.image)

    def spread(self, subject: Subject) -> Panel:
        """Return the singular values of W/σ, which keep the law proper, and how often spikes are open."""
        name, x = subject.held_out
        return spike_panel(subject.model, name, x)


def filter_panel(machine: SpikeSlabRBM, image: tuple[int, ...] | None) -> Panel | None:
    """Return the largest filters as images; None where samples are none."""
    if image is None:
        return None
    weight = machine.weight.detach().t()
    largest = weight.norm(dim=1).argsort(descending=True)[:_N_FILTERS]
    top = weight[largest].abs().amax().item() or 1.0
    images = weight[largest].reshape(-1, *(image if len(image) == 3 else (1, *image)))
    grid = ImageGrid("filters", "The largest filters; mid gray is zero.", images, 16, (-top, top))
    return Panel("Filters", "The directions along which an open spike frees the data to vary.", [grid])


@torch.no_grad()
def spike_panel(machine: SpikeSlabRBM, name: str, x: Tensor) -> Panel:
    """Return the singular values of W/σ, and how often the samples x of this name open each spike."""
    values = {"singular values of W/σ": torch.linalg.svdvals(machine.scaled_weight())}
    activity = {name: machine.spike_mean(x).mean(0)}
    text = f"The largest singular value is {machine.largest_singular_value():.3f}; below 1 the law is proper."
    return Panel(
        "Spikes and slabs",
        text,
        [
            Histograms("singular-values", "Directions near 1 vary most when their spikes are open.", values),
            Histograms("activity", "How often each spike is open.", activity, x_label="share of samples"),
        ],
    )
