"""The folder of an experiment on faces: its settings, its data, and the network that was trained in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from harmonium.data import Data, load
from harmonium.experiments.base import Experiment
from harmonium.experiments.faces.network import empty_lower_network, top_machine, with_machine
from harmonium.experiments.faces.recipe import FaceRecipe
from harmonium.models import DBN
from harmonium.runs.folder import RunFolder

CURVE = "curve"
"""The folder of the top machine at some epochs."""


@dataclass(eq=False, kw_only=True)
class FaceFolder(Experiment):
    """What the stages of an experiment on faces share. A stage whose file is there is not repeated."""

    name: ClassVar[str] = "faces"
    recipe_type: ClassVar[type] = FaceRecipe

    recipe: FaceRecipe
    data_name: str = "celeba"
    size: int = 32
    n_samples: int = 2000
    n_steps: int = 1000

    @cached_property
    def data(self) -> Data:
        """The data, pictures of the right size."""
        return load(self.data_name, data_dir=self.data_dir, size=self.size)

    @cached_property
    def lower(self) -> RunFolder:
        """The folder of what lies below the top machine."""
        return self._part("lower")

    @cached_property
    def tuned(self) -> RunFolder:
        """The folder of the layers while they learn as a whole."""
        return self._part("tuned")

    def _part(self, name: str) -> RunFolder:
        path = self.folder / name
        path.mkdir(exist_ok=True)
        return RunFolder(path)

    def network(self) -> DBN:
        """Return the trained network."""
        dbn = with_machine(empty_lower_network(self.recipe, tuple(self.data.shape)), top_machine(self.recipe))
        dbn.load_state_dict(self.parameters())
        return dbn


def as_floats(x: Tensor) -> Tensor:
    """Return bytes as values in [0, 1]."""
    return x.float() / 255


def mirrored(x: Tensor) -> Tensor:
    """Return images and their mirror images: a face is as good either way."""
    return torch.cat([x, x.flip(-1)])
