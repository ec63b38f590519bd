"""Subspace RBMs: gates over groups of features."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from pydantic import Field

from harmonium.data import Data
from harmonium.learning.starts import initialize
from harmonium.models import SubspaceRBM
from harmonium.runs.kinds.base import Kind, PanelMaker
from harmonium.runs.kinds.rbm import visible_units
from harmonium.runs.panels import ImageGrid, Panel
from harmonium.runs.settings import Config, Section
from harmonium.runs.subject import Subject
from harmonium.units import Bernoulli

_N_GROUPS = 24


class SubspaceSettings(Section):
    """The groups: `model.n_hidden` gates of `width` subspace units each."""

    width: int = Field(default=3, ge=1, description="Subspace units that a gate opens.")


class SubspaceRBMKind(Kind[SubspaceSettings]):
    """A subspace RBM; its visible units follow the data."""

    name = "subspace-rbm"
    summary = "RBM whose hidden units are gates over groups of features"
    settings = SubspaceSettings
    unread = ("model.hidden", "model.options")
    recipes: ClassVar[Mapping[str, dict[str, Any]]] = {
        "digits": {
            "model": {"n_hidden": 64},
            "training": {
                "n_chains": 128,
                "n_steps": 5,
                "epochs": 60,
                "batch_size": 64,
                "optimizer": "adam",
                "learning_rate": 0.01,
                "schedule": "linear",
                "weight_decay": 1e-3,
                "track_likelihood": False,
            },
            "run": {"threads": 1},
        },
        "*": {
            "model": {"n_hidden": 100},
            "training": {
                "n_chains": 100,
                "epochs": 20,
                "batch_size": 100,
                "optimizer": "adam",
                "learning_rate": 0.001,
                "schedule": "linear",
                "weight_decay": 1e-4,
                "track_likelihood": False,
            },
        },
    }

    def build(self, config: Config, data: Data, *, generator: torch.Generator) -> SubspaceRBM:
        """Return the machine, its visible biases fitted to the training split."""
        gray = data.kind == "real" and config.data.binarize == "scale"
        visible = Bernoulli(math.prod(data.shape)) if gray else visible_units(data)
        machine = SubspaceRBM(visible, config.model.n_hidden, self.own(config).width, generator=generator)
        rows = data.train[:10_000].reshape(-1, *visible.shape)
        initialize(machine, rows if data.transform is None else data.transform(rows, generator=generator))
        return machine

    def size(self, config: Config) -> str:
        """Return the number of gates and the width of their groups."""
        return f"{config.model.n_hidden}×{self.own(config).width}"

    def sections(self) -> tuple[str | PanelMaker, ...]:
        """Return the sections of any machine, with the groups in place of single filters."""
        return "learning", "samples", self.groups, "reconstructions", "inpainting", "energies", "parameters"

    def groups(self, subject: Subject) -> Panel | None:
        """Return the filters of the largest groups, a column for each gate."""
        machine: SubspaceRBM = subject.model
        if subject.image is None:
            return None
        width = machine.layer("subspace").shape[1]
        weight = machine.weight.detach().t().unflatten(0, (-1, width))
        largest = weight.flatten(1).norm(dim=1).argsort(descending=True)[:_N_GROUPS]
        shown = weight[largest].transpose(0, 1)
        top = shown.abs().amax().item() or 1.0
        image = subject.image if len(subject.image) == 3 else (1, *subject.image)
        images = shown.reshape(-1, *image)
        caption = "Each column is the group of one gate: it opens where the column as a whole fits. Gray is zero."
        grid = ImageGrid("groups", caption, images, len(largest), (-top, top))
        return Panel("Groups", f"The {len(largest)} largest of {len(weight)} groups of filters.", [grid])
