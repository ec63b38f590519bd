"""Restricted Boltzmann machines that classify: by one weight a classifier, a density, or both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from harmonium.data import Data
from harmonium.data.known_labels import known_labels
from harmonium.learning.monitors import JointCurves, default_monitors
from harmonium.learning.objectives import Hybrid
from harmonium.learning.starts import initialize
from harmonium.models import ClassRBM
from harmonium.runs.choices import HIDDEN
from harmonium.runs.class_panels import calibration, class_labels, class_scores, confusions
from harmonium.runs.kinds.base import FOLLOWED, Kind, PanelMaker, contrastive
from harmonium.runs.kinds.rbm import PLANES, visible_units
from harmonium.runs.panels import ImageGrid, Panel
from harmonium.runs.settings import Config, Section
from harmonium.runs.subject import Subject
from harmonium.runs.task import Task
from harmonium.runs.trained import Trained
from harmonium.runs.values import Prepared
from harmonium.runs.words import class_lines, class_sentences
from harmonium.samplers import sample
from harmonium.units import Bernoulli

_N_START, _N_EACH, _N_CLASSES = 10_000, 8, 20

_IMAGES_28: dict[str, Any] = {
    "data": {"binarize": "resample"},
    "model": {"n_hidden": 1000},
    "training": {
        "objective": "cd",
        "epochs": 20,
        "learning_rate": 1.0,
        "momentum": 0.9,
        "schedule": "linear",
        "centering": True,
        "average": 0.999,
    },
    "class-rbm": {"generation_weight": 0.03},
}
_PLANE: dict[str, Any] = {  # plain gradient descent throws points far away
    "model": {"n_hidden": 100},
    "training": {
        "objective": "cd",
        "epochs": 30,
        "optimizer": "adam",
        "learning_rate": 0.005,
        "schedule": "linear",
        "average": 0.999,
    },
    "run": {"threads": 1},
}


class ClassRBMSettings(Section):
    """How an RBM with classes learns: `L = (1 - w) L_disc + w L_gen` with w = `generation_weight` (see `Hybrid`).

    `labels` is how many labels of the training data are known, as many of each class; 0 stands for all.
    """

    generation_weight: float = Field(
        default=0.01, ge=0, le=1, description="0 trains a classifier, 1 a joint density, between both."
    )
    labels: int = Field(default=0, ge=0, description="How many labels are known, as many of each class; 0: all.")


class ClassRBMKind(Kind[ClassRBMSettings]):
    """An RBM with a label beside its data; p(class | data) is exact."""

    name = "class-rbm"
    summary = "RBM with a label beside its data; classifies exactly, draws from a class"
    settings = ClassRBMSettings
    unread = FOLLOWED
    recipes: ClassVar[Mapping[str, dict[str, Any]]] = {
        **dict.fromkeys(PLANES, _PLANE),
        "digits": {
            "data": {"binarize": "threshold"},
            "model": {"n_hidden": 200},
            "training": {
                "n_chains": 64,
                "epochs": 100,
                "batch_size": 64,
                "learning_rate": 0.2,
                "momentum": 0.9,
                "schedule": "linear",
                "average": 0.99,
            },
            "class-rbm": {"generation_weight": 0.1},
            "run": {"threads": 1},
        },
        "mnist": _IMAGES_28,
        "fashion-mnist": _IMAGES_28,
        "*": {
            "model": {"n_hidden": 1000},
            "training": {
                "objective": "cd",
                "epochs": 30,
                "learning_rate": 0.2,
                "momentum": 0.9,
                "schedule": "linear",
                "average": 0.999,
            },
        },
    }
    watched: ClassVar[Mapping[str, str]] = {
        "classification_loss": "L_disc {:.4f}",
        "validation_accuracy": "valid accuracy {:.2%}",
        "reconstruction": "reconstruction {:.4g}",
    }

    def build(self, config: Config, data: Data, *, generator: torch.Generator) -> ClassRBM:
        """Return the machine, its visible biases fitted to the training split."""
        y = class_labels(data, self.name)
        gray = data.kind == "real" and config.data.binarize == "scale"
        visible = Bernoulli(math.prod(data.shape)) if gray else visible_units(data)
        hidden = HIDDEN[config.model.hidden](config.model.n_hidden, config.model.options)
        machine = ClassRBM(visible, hidden, int(y.max()) + 1, generator=generator)
        rows = data.train[:_N_START].reshape(-1, *visible.shape)
        initialize(machine, rows if data.transform is None else data.transform(rows, generator=generator))
        return machine

    def task(self, config: Config, prepared: Prepared, model: ClassRBM, *, generator: torch.Generator) -> Task:
        """Return the hybrid loss on the training data, of which some may have no label."""
        own, data, shape = self.own(config), prepared.data, self.shape(model, prepared.data)
        y = class_labels(data, self.name)
        if own.labels:
            rows = known_labels(y, own.labels, generator=generator)
            y = torch.full_like(y, -1).scatter(0, rows, y[rows])
        valid, valid_y = prepared.rows("valid", shape), data.valid_labels
        held_out = None if valid is None or valid_y is None else (valid.to(model.weight), valid_y)
        learns = Hybrid(own.generation_weight, contrastive(config))
        monitors = [*default_monitors(), JointCurves(held_out)]
        return Task({"visible": prepared.rows("train", shape), "label": y}, learns, monitors)

    def draw(
        self, trained: Trained, n: int, *, n_steps: int, y: int | None = None, generator: torch.Generator
    ) -> Tensor:
        """Return the ends of chains of `p(x)`, or of `p(x | y)` if a class is given."""
        if y is None:
            return super().draw(trained, n, n_steps=n_steps, generator=generator)
        n_classes = trained.model.n_classes
        if y >= n_classes:
            raise ValueError(f"The classes of {trained.data.name} are 0..{n_classes - 1}. Got {y}.")
        return sample(trained.model, n, n_steps=n_steps, given={"label": torch.tensor(y)}, generator=generator)

    def scores(self, trained: Trained, *, n_chains: int | None = None, n_betas: int | None = None) -> dict[str, Any]:
        """Return the accuracy on each split, the calibration error on held-out data, and the log-likelihood of x."""
        if self.own(trained.config).generation_weight == 0 and n_chains is None and n_betas is None:
            data = trained.data
            rest: dict[str, Any] = {"data": str(data), "note": data.note, "likelihood": "none: w is 0, no density was"}
            rest["likelihood"] += " learned. Estimate it all the same by: harmonium evaluate RUN --n-betas 10000"
        else:
            rest = super().scores(trained, n_chains=n_chains, n_betas=n_betas)
        return class_scores(trained) | rest

    def lines(self, scores: Mapping[str, Any]) -> list[str]:
        """Return what the classifier does, and the likelihoods."""
        return [*class_lines(scores), *super().lines(scores)]

    def headline(self, scores: Mapping[str, Any]) -> str:
        """Return the accuracy on the test data, and the likelihood where there is one."""
        found, nats = scores["accuracy"].get("test"), super().headline(scores)
        return ", ".join([*([f"accuracy {found['value']:.2%}"] if found else []), *([nats] if nats else [])])

    def verdict(self, scores: Mapping[str, Any]) -> list[str]:
        """Return what the classifier does, in sentences."""
        return class_sentences(scores)

    def sections(self) -> tuple[str | PanelMaker, ...]:
        """Return what is shown of any machine, and samples of each class, calibration and confusions."""
        own = (self.by_class, confusions, calibration)
        return "learning", *own, "samples", "filters", "reconstructions", "inpainting", "energies", "parameters"

    def by_class(self, subject: Subject) -> Panel | None:
        """Return samples of `p(x | y)`, one column for each class."""
        if subject.image is None:
            return None
        machine: ClassRBM = subject.model
        n = min(machine.n_classes, _N_CLASSES)
        y = torch.arange(n).repeat(_N_EACH)
        given = {"label": y}
        x = sample(machine, len(y), n_steps=subject.n_steps, given=given, generator=subject.generator)
        share = (machine.classify(x).cpu() == y).double().mean().item()
        caption = (
            f"Chains of p(x | y), one column a class, {subject.n_steps:,} steps from the biases. The machine itself "
            f"takes {share:.0%} of them for their class."
        )
        grid = ImageGrid("classes", caption, subject.shown(x), n)
        return Panel("Samples of each class", "Nothing was selected.", [grid])
