"""Scale mixtures of spikes and slabs: real data whose contrast varies from sample to sample."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from harmonium.data import Data
from harmonium.learning.monitors import default_monitors
from harmonium.learning.objectives import ScaledContrast
from harmonium.learning.starts import independent_filters
from harmonium.models import ScaleMixture, SpikeSlabRBM
from harmonium.runs.kinds.base import FOLLOWED, SPARSE, Kind, PanelMaker, contrastive
from harmonium.runs.kinds.spike_slab_rbm import FLOOR, filter_panel, spike_panel
from harmonium.runs.panels import Histograms, ImageGrid, Lines, Panel, Shown
from harmonium.runs.plays import Play, Samples
from harmonium.runs.settings import Config, Section
from harmonium.runs.subject import N_CHAINS, Subject
from harmonium.runs.task import Task
from harmonium.runs.trained import Trained
from harmonium.runs.values import Prepared, complete, real_values
from harmonium.samplers import sample
from harmonium.units import Gaussian

_N_START = 20_000
_FASTER = 10  # the rate of the shares beside that of the machine: few numbers, and every sample has a say in them
_WIDER = 4.0  # how much longer open spikes make a sample than σ alone
_LEARNING: dict[str, Any] = {
    "n_chains": 100,
    "batch_size": 100,
    "optimizer": "adam",
    "schedule": "linear",
    "track_likelihood": False,
}


class ScaleMixtureSettings(Section):
    """The machine, `model.n_hidden` spikes of `slabs` filters each, and the scales that its samples are multiplied by.

    Scales go from a quarter of the length of the shortest training sample to that of the longest (each divided by √n).
    """

    slabs: int = Field(default=3, ge=1, description="Slabs that a spike opens.")
    scales: int = Field(default=20, ge=2, description="Scales that a sample may have.")
    limit: float = Field(default=0.97, gt=0, lt=1)


class ScaleMixtureKind(Kind[ScaleMixtureSettings]):
    """A scale mixture of a spike-and-slab RBM, started at independent directions of its data."""

    name = "scale-mixture"
    summary = "spike-and-slab RBM of real values whose contrast varies from sample to sample"
    settings = ScaleMixtureSettings
    unread = ("model.hidden", "model.options", "data.binarize", "training.centering", *SPARSE, *FOLLOWED)
    recipes: ClassVar[Mapping[str, dict[str, Any]]] = {
        "cifar10-patches": {"model": {"n_hidden": 64}, "training": _LEARNING | {"epochs": 2, "learning_rate": 0.0005}},
        "*": {"model": {"n_hidden": 64}, "training": _LEARNING | {"epochs": 30, "learning_rate": 0.002}},
    }

    def values(self, config: Config, data: Data) -> Prepared:
        """Return real values without holes."""
        prepared = real_values(data, config.data.standardize)
        if any(bool(x.isnan().any()) for x in prepared.data.splits.values()):
            raise ValueError(
                f"{data.name} has missing values, and a scale mixture needs whole samples: a scale is that of all "
                "values. Choose --model spike-slab-rbm, or fill them in first."
            )
        return prepared

    def build(self, config: Config, data: Data, *, generator: torch.Generator) -> ScaleMixture:
        """Return the mixture with its scales and their shares fitted, and filters to begin with.

        They are independent directions of the data, each sample divided by a scale, where these are enough for all
        spikes; otherwise they stay as they were drawn, and as large as `limit` lets them.
        """
        own, n = self.own(config), math.prod(data.shape)
        x = data.train[:_N_START].reshape(-1, n)
        lengths = x.norm(dim=1) / math.sqrt(n)
        longest = lengths.max().item() or 1.0
        shortest = max(lengths.min().item(), longest / 1000)
        visible = Gaussian(n, floor=FLOOR)
        machine = SpikeSlabRBM(visible, config.model.n_hidden, own.slabs, own.limit, generator=generator)
        mixture = ScaleMixture(machine, shortest / _WIDER, longest * 1.01, own.scales)
        mixture.fit_share(x)
        if machine.n_spikes * machine.width <= min(n, len(x)):
            independent_filters(machine, mixture.divided(x, generator=generator), generator=generator)
        else:
            with torch.no_grad():
                machine.weight.mul_(own.limit / machine.largest_singular_value())
        mixture.fit_share(x)
        return mixture

    def shape(self, model: ScaleMixture, data: Data) -> tuple[int, ...]:
        """Return the shape of a sample, flat."""
        return model.shape

    def task(self, config: Config, prepared: Prepared, model: ScaleMixture, *, generator: torch.Generator) -> Task:
        """Return the contrast of the machine at scales drawn for the data."""
        learns = contrastive(config)
        learns.check(model.machine)
        valid = complete(prepared.rows("valid", model.shape))
        return Task(prepared.rows("train", model.shape), ScaledContrast(learns), default_monitors(), valid)

    def optimizer(self, config: Config, model: ScaleMixture) -> torch.optim.Optimizer:
        """Return the optimizer of any kind, with a higher rate for the shares of the scales."""
        made = super().optimizer(config, model.machine)
        made.add_param_group({"params": [model.log_share], "lr": _FASTER * config.training.learning_rate})
        return made

    def draw(
        self, trained: Trained, n: int, *, n_steps: int, y: int | None = None, generator: torch.Generator
    ) -> Tensor:
        """Return the ends of chains of the machine, each times a scale."""
        self.refuse_class(y)
        return sample(trained.model, n, n_steps=n_steps, generator=generator)

    def fill_in(self, trained: Trained, given: Tensor, *, n_steps: int, generator: torch.Generator) -> Tensor:
        """Raise, since a scale is that of all values."""
        raise ValueError(
            "A scale mixture does not fill in missing values: its chains are those of its machine, at no scale. Use "
            "a run of --model spike-slab-rbm."
        )

    def plays(self) -> tuple[Play, ...]:
        """Return samples, drawn anew: chains do not hold the data."""
        return (Samples(self.draw),)

    def size(self, config: Config) -> str:
        """Return the number of spikes and of slabs for each."""
        return f"{config.model.n_hidden}×{self.own(config).slabs}"

    def sections(self) -> tuple[str | PanelMaker, ...]:
        """Return samples and scales beside those of the data, the density, filters and spikes of the machine."""
        return "learning", self.samples, self.scales, "density", self.filters, self.spread, "energies"

    def samples(self, subject: Subject) -> Panel:
        """Return samples of the mixture: images, or else how their lengths are spread."""
        x = sample(subject.model, N_CHAINS, n_steps=subject.n_steps, generator=subject.generator)
        name, held_out = subject.held_out
        lengths = {name: held_out.flatten(1).norm(dim=1), "samples": x.flatten(1).norm(dim=1)}
        pictures: list[Shown] = [
            Histograms("lengths", "How long samples of the data and of the model are.", lengths, x_label="‖x‖")
        ]
        if subject.image is not None:
            caption = "The ends of all chains of the machine, each times a scale of its own."
            pictures.insert(0, ImageGrid("samples", caption, subject.shown(x), 20))
        text = f"Independent chains of the machine after {subject.n_steps:,} steps. Nothing was selected."
        return Panel("Samples", text, pictures)

    @torch.no_grad()
    def scales(self, subject: Subject) -> Panel:
        """Return the shares of the scales, learned and in held-out data."""
        mixture: ScaleMixture = subject.model
        name, x = subject.held_out
        shares = {"π, learned": mixture.share(), f"mean of p(m | x), {name}": mixture.scale_probabilities(x).mean(0)}
        caption = "Both agree where the scales suit the data."
        lines = Lines(
            "scales",
            caption,
            mixture.scales().tolist(),
            {label: share.tolist() for label, share in shares.items()},
            title="Shares of the scales",
            x_label="scale z",
            y_label="share",
        )
        return Panel("Scales", "How much whole samples vary, apart from what the machine says of them.", [lines])

    def filters(self, subject: Subject) -> Panel | None:
        """Return the largest filters as images."""
        return filter_panel(subject.model.machine, subject.image)

    def spread(self, subject: Subject) -> Panel:
        """Return the singular values of W/σ, and how often spikes are open at samples divided by their scales."""
        name, x = subject.held_out
        u = subject.model.divided(x, generator=subject.generator)
        return spike_panel(subject.model.machine, name, u)
