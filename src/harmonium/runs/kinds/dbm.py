"""Deep Boltzmann machines: their start by pairs, how they learn, what their depths know."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field, field_validator
from torch import Tensor

from harmonium.data import Data
from harmonium.inference import MeanField
from harmonium.learning import Training
from harmonium.learning.doubled_pairs import fit_doubled_pairs
from harmonium.learning.monitors import default_monitors
from harmonium.learning.objectives import CD
from harmonium.learning.starts import initialize
from harmonium.models import DBM
from harmonium.runs.choices import HIDDEN
from harmonium.runs.kinds.base import FOLLOWED, Kind, PanelMaker, contrastive
from harmonium.runs.kinds.rbm import visible_units
from harmonium.runs.panels import ImageGrid, ImageRows, Panel
from harmonium.runs.settings import Config, Section
from harmonium.runs.subject import Subject
from harmonium.runs.task import Task
from harmonium.runs.values import Prepared, complete
from harmonium.units import Bernoulli

_N_START, _N_SHOWN, _N_FILTERS = 10_000, 16, 100


class DBMSettings(Section):
    """How a deep Boltzmann machine is made and learns.

    `layers` are the sizes of its hidden layers from below. Each pair of layers first learns by itself for `pair_epochs`
    epochs (see `fit_doubled_pairs`; 0 leaves that out), at half the learning rate, since every weight is there twice.
    Then all learn together: hidden layers are filled in by at most `n_rounds` rounds of mean field.
    """

    layers: str = Field(default="500, 1000", description='Sizes of the hidden layers from below, such as "500, 1000".')
    pair_epochs: int = Field(default=5, ge=0, description="Epochs in which pairs of layers learn first; 0: none.")
    n_rounds: int = Field(default=10, ge=1)
    tolerance: float = Field(default=0.01, ge=0)

    @field_validator("layers")
    @classmethod
    def _sizes(cls, value: str) -> str:
        words = [word.strip() for word in value.split(",")]
        if len(words) < 2 or not all(word.isdigit() and int(word) for word in words):
            raise ValueError('must name at least two sizes, such as "500, 1000"')
        return value

    @property
    def sizes(self) -> list[int]:
        """The sizes of the hidden layers as numbers."""
        return [int(word) for word in self.layers.split(",")]


class DBMKind(Kind[DBMSettings]):
    """A deep Boltzmann machine whose visible units follow the data."""

    name = "dbm"
    summary = "deep Boltzmann machine; hidden layers that hear each other, with a bound of the likelihood"
    settings = DBMSettings
    unread = ("model.n_hidden", *FOLLOWED)
    recipes: ClassVar[Mapping[str, dict[str, Any]]] = {
        "digits": {
            "data": {"binarize": "threshold"},
            "training": {
                "n_chains": 128,
                "n_steps": 5,
                "epochs": 100,
                "batch_size": 64,
                "learning_rate": 0.1,
                "schedule": "linear",
                "weight_decay": 1e-3,
                "centering": True,
                "average": 0.99,
            },
            "dbm": {"layers": "100, 50", "pair_epochs": 100},
            "run": {"threads": 1},
        },
        "*": {
            "training": {
                "n_chains": 100,
                "epochs": 50,
                "batch_size": 100,
                "schedule": "linear",
                "weight_decay": 5e-4,
                "centering": True,
                "average": 0.999,
            }
        },
    }
    watched: ClassVar[Mapping[str, str]] = {"reconstruction": "reconstruction {:.4g}", "r_hat": "R-hat {:.2f}"}

    def build(self, config: Config, data: Data, *, generator: torch.Generator) -> DBM:
        """Return the machine, its visible biases fitted to the training split."""
        gray = data.kind == "real" and config.data.binarize == "scale"
        visible = Bernoulli(math.prod(data.shape)) if gray else visible_units(data)
        make = HIDDEN[config.model.hidden]
        hidden = [make(n, config.model.options) for n in self.own(config).sizes]
        dbm = DBM(visible, *hidden, generator=generator)
        rows = data.train[:_N_START].reshape(-1, *visible.shape)
        initialize(dbm, rows if data.transform is None else data.transform(rows, generator=generator))
        return dbm

    def task(self, config: Config, prepared: Prepared, model: DBM, *, generator: torch.Generator) -> Task:
        """Return the contrast of mean field on the data and chains of the model."""
        own, shape = self.own(config), self.shape(model, prepared.data)
        learns: Any = contrastive(config)
        filled = dataclasses.replace(learns, inference=MeanField(own.n_rounds, tolerance=own.tolerance))
        valid = complete(prepared.rows("valid", shape))
        return Task(prepared.rows("train", shape), filled, default_monitors(), valid)

    def warm_up(self, config: Config, prepared: Prepared, training: Training) -> bool:
        """Let pairs of layers learn by themselves, by one step of contrastive divergence."""
        own, section = self.own(config), config.training
        x = prepared.rows("train", self.shape(training.model, prepared.data))
        if not own.pair_epochs or not section.epochs or x is None:
            return False
        if prepared.data.transform is not None:
            x = prepared.data.transform(x, generator=training.generator)
        fit_doubled_pairs(
            training.model,  # type: ignore[arg-type]
            x,
            CD(),
            optimizer=lambda parameters: torch.optim.SGD(parameters, section.learning_rate / 2),
            epochs=own.pair_epochs,
            batch_size=section.batch_size,
            generator=training.generator,
            transforms=[self.centering()] if section.centering else [],
        )
        return True

    def size(self, config: Config) -> str:
        """Return the sizes of the hidden layers."""
        return "–".join(map(str, self.own(config).sizes))

    def sections(self) -> tuple[str | PanelMaker, ...]:
        """Return what is shown of any machine, and what each depth knows and looks for."""
        return "learning", "samples", self.depths, "filters", self.deep_filters, "inpainting", "parameters"

    @torch.no_grad()
    def depths(self, subject: Subject) -> Panel | None:
        """Return held-out images above what each hidden layer, at its mean-field means, says of them on its own."""
        if subject.image is None:
            return None
        dbm: DBM = subject.model
        name, x = subject.held_out
        means = MeanField().fixed_point(dbm, {"visible": x[:_N_SHOWN]}).state
        rows = {"data": x[:_N_SHOWN]} | {f"layer {i}": below(dbm, i, means) for i in range(1, dbm.depth + 1)}
        caption = (
            f"{name.capitalize()} samples, and the means of the visible units below the means of each hidden layer. "
            "Below a deep layer those between stand at their means given it alone, heard twice where the layer below "
            "is missing."
        )
        shown = {label: subject.shown(images) for label, images in rows.items()}
        return Panel("Reconstructions", "What each depth knows.", [ImageRows("depths", caption, shown)])

    def deep_filters(self, subject: Subject) -> Panel | None:
        """Return the weights of the second layer and beyond, seen through those below."""
        if subject.image is None:
            return None
        weights = [w.detach().cpu() for w in subject.model.weights]
        seen = list(itertools.accumulate(weights, torch.matmul))[1:]
        pictures = []
        for i, product in enumerate(seen, 2):
            largest = product.norm(dim=0).topk(min(_N_FILTERS, product.shape[1])).indices
            images = product.T[largest].reshape(-1, *subject.image)
            images = images / images.flatten(1).abs().amax(1).clamp_min(1e-12).reshape(-1, *(1,) * len(subject.image))
            name = "W₁W₂" if i == 2 else f"W₁⋯W{chr(ord('₀') + i)}"
            caption = (
                f"{name}: what {len(largest)} units of layer {i} do to the image through the layers below. They are "
                "those with the longest weights, each scaled to its largest."
            )
            pictures.append(ImageGrid(f"filters-{i}", caption, images, 20, limits=(-1.0, 1.0)))
        return Panel("Deep filters", "What the deeper layers look for.", list(pictures))


def below(dbm: DBM, i: int, means: Mapping[str, Tensor]) -> Tensor:
    """Return the means of the visible units below hidden layer i at these means."""
    value, names = means[f"hidden_{i}"], list(dbm.units)
    for level in reversed(range(i)):
        name = names[level]
        field = dbm.field(name, {names[level + 1]: value}, partial=True)
        if level:  # the layer below is missing: what is above counts twice
            field = 2 * field - dbm.bias_field(name)
        value = dbm.layer(name).mean(field)
    return value
