"""Networks that classify: from random weights, or from those of a trained stack of machines."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from harmonium.data import Data
from harmonium.data.known_labels import known_labels
from harmonium.learning import Training
from harmonium.learning.monitors import JointCurves
from harmonium.learning.objectives import CrossEntropy
from harmonium.models.stored import CLASS, rebuild
from harmonium.networks.layers import linear
from harmonium.runs.class_panels import calibration, class_labels, class_scores, confusions
from harmonium.runs.kinds.base import OF_TWO_PHASES, Kind, PanelMaker
from harmonium.runs.panels import ImageGrid, Panel
from harmonium.runs.settings import Config, Section
from harmonium.runs.subject import Subject
from harmonium.runs.task import Task
from harmonium.runs.trained import Trained
from harmonium.runs.values import Prepared, unit_values
from harmonium.runs.words import class_lines, class_sentences

ACTIVATIONS: dict[str, type[nn.Module]] = {"sigmoid": nn.Sigmoid, "tanh": nn.Tanh}
"""The activations of a network by their names: the means of units 0 and 1, and of units -1 and 1."""

_N_FILTERS = 100

_ADAM: dict[str, Any] = {"optimizer": "adam", "learning_rate": 1e-3, "schedule": "linear"}
_GRAY_28: dict[str, Any] = {
    "data": {"binarize": "scale"},
    "training": _ADAM | {"epochs": 20, "average": 0.998},
    "network": {"dropout": 0.3, "input_dropout": 0.1},
}


class NetworkSettings(Section):
    """How a network is made and learns.

    `widths` are those of its hidden layers, the lowest first. `pretrained` names the run whose weights it started from,
    as `harmonium fine-tune` writes it; without one they are drawn. `stack` describes, as the file of a model does, the
    machines that the network is the way up of, where widths and one activation do not say it. `labels` is how many
    labels are known, as many of each class (0: all); the other rows are left out. `dropout` and `input_dropout` are as
    in `CrossEntropy`.
    """

    widths: str = Field(default="500, 1000", description='Widths of the hidden layers from below, such as "500, 1000".')
    activation: str = "sigmoid"
    pretrained: str = ""
    stack: str = ""
    labels: int = Field(default=0, ge=0, description="How many labels are known, as many of each class; 0: all.")
    dropout: float = Field(default=0.0, ge=0, lt=1, description="Share of hidden units left out at each update.")
    input_dropout: float = Field(default=0.0, ge=0, lt=1, description="Share of inputs left out at each update.")

    @field_validator("widths")
    @classmethod
    def _numbers(cls, value: str) -> str:
        if not all(word.strip().isdigit() and int(word) for word in value.split(",")):
            raise ValueError('must name widths, such as "500, 1000"')
        return value

    @field_validator("stack")
    @classmethod
    def _described(cls, value: str) -> str:
        try:
            kind = json.loads(value)[CLASS] if value else ""
        except (ValueError, TypeError, KeyError, RecursionError):
            kind = "nothing"
        if kind not in ("", "RBM", "ClassRBM", "DBN", "DBM"):
            raise ValueError("must describe a stack of machines, as `harmonium fine-tune` writes it")
        return value

    @field_validator("activation")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in ACTIVATIONS:
            raise ValueError(f"must be one of {', '.join(ACTIVATIONS)}")
        return value


class NetworkKind(Kind[NetworkSettings]):
    """A network of dense layers with an output for each class; it has no density."""

    name = "network"
    summary = "network that classifies; what `harmonium fine-tune RUN` makes of a trained stack"
    settings = NetworkSettings
    unread = (*OF_TWO_PHASES, "data.standardize", "model.n_hidden", "model.hidden", "model.options")
    recipes: ClassVar[Mapping[str, dict[str, Any]]] = {
        "mnist": _GRAY_28,
        "fashion-mnist": _GRAY_28,
        "digits": {
            "data": {"binarize": "scale"},
            "training": _ADAM | {"epochs": 100},
            "network": {"widths": "128"},
            "run": {"threads": 1},
        },
        "*": {"training": _ADAM | {"epochs": 50}},
    }
    watched: ClassVar[Mapping[str, str]] = {
        "classification_loss": "loss {:.4f}",
        "validation_accuracy": "valid accuracy {:.2%}",
    }

    def values(self, config: Config, data: Data) -> Prepared:
        """Return the values that a machine would see, and see that there are classes."""
        class_labels(data, self.name)
        return unit_values(config, data)

    def build(self, config: Config, data: Data, *, generator: torch.Generator) -> nn.Sequential:
        """Return the network with random weights."""
        own = self.own(config)
        n_classes = int(class_labels(data, self.name).max()) + 1
        if own.stack:
            return rebuild(json.loads(own.stack)).to_network(n_classes)
        widths = [math.prod(data.shape), *map(int, own.widths.split(","))]
        modules: list[nn.Module] = []
        for n_in, n_out in itertools.pairwise(widths):
            modules += [linear(n_in, n_out, generator=generator), ACTIVATIONS[own.activation]()]
        return nn.Sequential(*modules, linear(widths[-1], n_classes, generator=generator))

    def shape(self, model: nn.Sequential, data: Data) -> tuple[int, ...]:
        """Return the shape of a sample: flat where the lowest layer is dense."""
        return (math.prod(data.shape),) if isinstance(model[0], nn.Linear) else data.shape

    def task(self, config: Config, prepared: Prepared, model: nn.Sequential, *, generator: torch.Generator) -> Task:
        """Return the cross-entropy on the rows whose labels are known."""
        own, data, shape = self.own(config), prepared.data, self.shape(model, prepared.data)
        x, y = prepared.rows("train", shape), class_labels(data, self.name)
        if own.labels and x is not None:
            rows = known_labels(y, own.labels, generator=generator)
            x, y = x[rows], y[rows]
        valid, valid_y, some = prepared.rows("valid", shape), data.valid_labels, next(model.parameters())
        held_out = None if valid is None or valid_y is None else (valid.to(some), valid_y.to(some.device))
        return Task((x, y), CrossEntropy(own.dropout, own.input_dropout), [JointCurves(held_out)])

    def warm_up(self, config: Config, prepared: Prepared, training: Training) -> bool:
        """Raise if the weights that it started from are lost: they are in its first checkpoint."""
        pretrained = self.own(config).pretrained
        if pretrained:
            raise ValueError(
                f"This network started from the weights of {pretrained}, and no checkpoint of it is left. Make it "
                f"again: harmonium fine-tune {pretrained}"
            )
        return False

    def draw(
        self, trained: Trained, n: int, *, n_steps: int, y: int | None = None, generator: torch.Generator
    ) -> Tensor:
        """Raise, since a classifier has no law of the data."""
        raise ValueError("A network has no density to draw from: it only classifies. Sample the run that it came from.")

    def fill_in(self, trained: Trained, given: Tensor, *, n_steps: int, generator: torch.Generator) -> Tensor:
        """Raise, since a classifier has no law of the data."""
        raise ValueError("A network cannot fill in missing values: it only classifies.")

    def scores(self, trained: Trained, *, n_chains: int | None = None, n_betas: int | None = None) -> dict[str, Any]:
        """Return the accuracy on each split and the calibration error."""
        data = trained.data
        said = {"data": str(data), "note": data.note, "likelihood": "none: a network that classifies has no density"}
        return class_scores(trained) | said

    def lines(self, scores: Mapping[str, Any]) -> list[str]:
        """Return what the classifier does."""
        return [*class_lines(scores), *super().lines(scores)]

    def headline(self, scores: Mapping[str, Any]) -> str:
        """Return the accuracy on the test data."""
        found = scores["accuracy"].get("test")
        return f"accuracy {found['value']:.2%}" if found else ""

    def verdict(self, scores: Mapping[str, Any]) -> list[str]:
        """Return what the classifier does, in sentences."""
        return class_sentences(scores)

    def size(self, config: Config) -> str:
        """Return the widths of the hidden layers."""
        return "–".join(word.strip() for word in self.own(config).widths.split(","))

    def sections(self) -> tuple[str | PanelMaker, ...]:
        """Return curves, confusions, calibration, and what the first layer looks for."""
        return "learning", confusions, calibration, self.first_filters

    def first_filters(self, subject: Subject) -> Panel | None:
        """Return the weights of the first layer as images."""
        if subject.image is None:
            return None
        lowest = next(module for module in subject.model if isinstance(module, nn.Linear | nn.Conv2d))
        weight = lowest.weight.detach().cpu()[:_N_FILTERS]
        size = float(weight.abs().amax())
        caption = f"The weights between the image and the first {len(weight)} units of the first layer, on one scale."
        grid = ImageGrid(
            "filters",
            caption,
            weight.reshape(-1, *(weight.shape[1:] if isinstance(lowest, nn.Conv2d) else subject.image)),
            20,
            limits=(-size, size),
        )
        return Panel("Filters", "What the first layer looks for.", [grid])
