"""A published experiment in a run folder: settings that decide its result, and stages that go on after a stop."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import torch

from harmonium.data import Data, load
from harmonium.learning import Callback
from harmonium.runs.config import read_toml
from harmonium.runs.folder import CONFIG, Listed, RunFolder
from harmonium.runs.panels import Panel

Message = Callable[[str], None]
"""What is told how it goes."""


def quiet(text: str) -> None:
    """Say nothing."""


@dataclass(eq=False, kw_only=True)
class Experiment(RunFolder, ABC):
    """One experiment, or one cell of its table, in a run folder of its own.

    The fields but `folder` and `data_dir` decide its result and are its settings, beside the `recipe`. The same
    settings in the same folder go on where they were stopped and end with the same bits; others are refused there.
    """

    name: ClassVar[str]
    recipe_type: ClassVar[type]

    folder: Path
    recipe: Any
    data_name: str
    seed: int = 0
    data_dir: str | None = None

    def __post_init__(self) -> None:
        super().__init__(self.folder)

    @classmethod
    def reopen(cls, folder: Path) -> Self:
        """Return the experiment in a folder, with the settings that are written there."""
        settings = read_settings(folder)
        fields = {field.name: settings["recipe"].get(field.name) for field in dataclasses.fields(cls.recipe_type)}
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        values = {name: value for name, value in settings["experiment"].items() if name != "name"}
        return cls(folder=folder, recipe=cls.recipe_type(**fields | lists), **values)

    def settings(self) -> dict[str, Any]:
        """Return the sections of `config.toml`."""
        names = [field.name for field in dataclasses.fields(self) if field.name not in ("folder", "recipe")]
        own = {"name": self.name} | {name: getattr(self, name) for name in names}
        return {"experiment": _written(own), "recipe": _written(dataclasses.asdict(self.recipe))}

    def begin(self) -> None:
        """Make the folder, or check that the one that is there was made with the same settings."""
        if not (self.folder / CONFIG).is_file():
            self.write_settings(self.settings())
        elif _deciding(read_settings(self.folder)) != _deciding(self.settings()):
            path = self.folder / CONFIG
            raise ValueError(
                f"{self.folder} was made with other settings ({path}). Choose another folder with --output."
            )

    @cached_property
    def data(self) -> Data:
        """The data, as they are stored."""
        return load(self.data_name, data_dir=self.data_dir)

    def generator(self, stage: int) -> torch.Generator:
        """Return the generator of a stage: stages do not depend on which of them were done before."""
        return torch.Generator().manual_seed(1000 * self.seed + stage)

    @property
    def epochs(self) -> int:
        """How many epochs it trains."""
        return int(self.recipe.epochs)

    @abstractmethod
    def train(self, *, callbacks: Sequence[Callback] = (), say: Message = quiet) -> bool:
        """Train to the end, from the last checkpoint on, and write the model. False if a callback stopped it before."""

    @abstractmethod
    def score(self, *, say: Message = quiet) -> dict[str, Any]:
        """Return the scores of the trained model: found in the folder, else made and written."""

    @abstractmethod
    def headline(self) -> str:
        """Return the one score by which it is listed, "" if there is none yet."""

    @abstractmethod
    def sentences(self) -> list[str]:
        """Return what came of it, for the top of its report."""

    @abstractmethod
    def panels(self) -> list[Panel]:
        """Return what its report shows."""

    def listed(self) -> Listed:
        """Return its line in the list of runs."""
        return Listed(self.data_name, self.name, f"seed {self.seed}", self.n_epochs, self.epochs, self.headline())


def read_settings(folder: Path) -> dict[str, Any]:
    """Return the settings that are written in a folder."""
    return read_toml(folder / CONFIG)


def _written(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as TOML has them: lists for tuples, and nothing for None."""
    items = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {name: value for name, value in items.items() if value is not None}


def _deciding(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the settings without where the data are."""
    return {name: {key: x for key, x in part.items() if key != "data_dir"} for name, part in settings.items()}
