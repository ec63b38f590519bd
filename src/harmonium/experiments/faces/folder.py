"""The folder of an experiment on faces: its settings, its data and its random numbers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from harmonium.data import Data, load
from harmonium.experiments.faces.recipe import FaceRecipe
from harmonium.runs.atomic import write_atomic

SETTINGS, LOWER, MODEL = "settings.json", "lower.safetensors", "model.safetensors"
SCORES, TABLE, CURVE = "scores.json", "table.md", "curve"

Message = Callable[[str], None]


@dataclass(frozen=True)
class FaceRun:
    """The folder of one experiment on faces. Each stage leaves a file, and a stage whose file is there is not repeated.

    `settings` are those that decide the result: size, seed, recipe, numbers of samples and steps.
    """

    folder: Path
    size: int
    seed: int
    recipe: FaceRecipe
    n_samples: int = 2000
    n_steps: int = 1000
    data: str = "celeba"

    def settings(self) -> dict[str, Any]:
        """Return what decides the result, as plain values."""
        values = {name: getattr(self, name) for name in ("size", "seed", "n_samples", "n_steps", "data")}
        return values | {"recipe": dataclasses.asdict(self.recipe)}

    def open(self) -> None:
        """Make the folder, or check that the one that is there was made with the same settings."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / SETTINGS
        if not path.is_file():
            write_atomic(path, json.dumps(self.settings(), indent=2).encode() + b"\n")
        elif json.loads(path.read_bytes()) != self.settings():
            raise ValueError(f"{self.folder} was made with other settings ({path}). Choose another folder with --out.")

    def images(self, data_dir: str | None = None) -> Data:
        """Return the data, pictures of the right size."""
        return load(self.data, data_dir=data_dir, size=self.size)

    def generator(self, stage: int) -> torch.Generator:
        """Return the generator of a stage: stages do not depend on which of them were done before."""
        return torch.Generator().manual_seed(1000 * self.seed + stage)


def as_floats(x: Tensor) -> Tensor:
    """Return bytes as values in [0, 1]."""
    return x.float() / 255


def mirrored(x: Tensor) -> Tensor:
    """Return images and their mirror images: a face is as good either way."""
    return torch.cat([x, x.flip(-1)])
