"""A cell of table 1 by the paper's network: a stack of N-level units, or one of the controls in its place."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from harmonium.data import DATASETS, Data, load
from harmonium.evaluation.classify.features import extract_features
from harmonium.evaluation.classify.svm_protocol import svm_protocol
from harmonium.experiments.base import Experiment, Message, quiet
from harmonium.experiments.table1.feature_recipe import Preparation, fit_preparation
from harmonium.experiments.table1.filter_sources import SOURCES, normalized, unlearned_filters
from harmonium.experiments.table1.stack import (
    Layer,
    LevelUnits,
    draw_layer_patches,
    fit_basis,
    layer_of,
    layer_training,
    network_of,
    some_images,
)
from harmonium.experiments.table1.stack_recipe import StackRecipe
from harmonium.learning import Callback
from harmonium.models import DBN
from harmonium.runs.folder import MODEL, RunFolder
from harmonium.runs.panels import Bars, Filters, Panel
from harmonium.runs.recorder import Recorder

SPLITS = ("train", "valid", "test")


@dataclass(eq=False, kw_only=True)
class StackCell(Experiment):
    """One cell: a data set, the units, where the filters come from, a seed and a recipe, in a folder of its own.

    `images` are the first so many training images, with half as many to choose by (0: all); `size` and `per_class` are
    for folders of pictures. The same seed draws the same whitening and patches whatever the units and the source of the
    filters.
    """

    name: ClassVar[str] = "table1-stack"
    recipe_type: ClassVar[type] = StackRecipe

    recipe: StackRecipe
    levels: int = 255
    k: float | None = None
    activation: str = "relu"
    filters: str = "learned"
    images: int = 0
    size: int = 64
    per_class: int = 30

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.filters not in SOURCES:
            raise ValueError(f"Filters come from {', '.join(SOURCES)}. Got {self.filters!r}.")

    @cached_property
    def data(self) -> Data:
        """The data, as they are stored; a folder is split anew for each seed."""
        if self.data_name in DATASETS:
            return load(self.data_name, data_dir=self.data_dir)
        generator = torch.Generator().manual_seed(self.seed)
        return load(self.data_name, generator=generator, size=self.size, per_class=self.per_class)

    @cached_property
    def train_images(self) -> Tensor:
        """The training images that are used."""
        return self.data.train[: self.images or None]

    @cached_property
    def preparation(self) -> Preparation:
        """From stored images to what the lowest filters see."""
        top = self.data.levels or 255
        return fit_preparation(self.recipe, self.train_images, top, generator=self.generator(0))

    @property
    def units(self) -> LevelUnits:
        """The units of all layers."""
        return LevelUnits(self.levels, self.k, self.activation)

    @property
    def epochs(self) -> int:
        """How many epochs each layer trains: controls do not."""
        return self.recipe.epochs if self.filters == "learned" else 0

    @property
    def n_epochs(self) -> int:
        """The epochs done so far: all of them where the network stands; those of single layers are in their folders."""
        return self.epochs if (self.folder / MODEL).is_file() else 0

    def train(self, *, callbacks: Sequence[Callback] = (), say: Message = quiet) -> bool:
        """Find the filters of each layer on what those below make of the images, the lowest first."""
        self.begin()
        if (self.folder / MODEL).is_file():
            return True
        with self.writing():
            layers: list[Layer] = []
            for i in range(len(self.recipe.groups)):
                layer = self._layer(i, layers, callbacks, say)
                if layer is None:
                    return False
                layers.append(layer)
            self.write_model({f"{i}.{key}": x for i, one in enumerate(layers) for key, x in one._asdict().items()})
        return True

    def _layer(self, i: int, below: list[Layer], callbacks: Sequence[Callback], say: Message) -> Layer | None:
        """Return layer i above the others; None if a callback stopped its training."""
        start, maps = time.process_time(), self._maps(i, below)
        patches = draw_layer_patches(self.recipe, i, maps, generator=self.generator(10 * i + 2))
        basis = fit_basis(self.recipe, i, patches)
        filters = self._filters(i, basis.coordinates(patches), callbacks, say)
        if filters is None:
            return None
        layer = layer_of(self.recipe, i, filters, basis, patches)
        seconds = time.process_time() - start
        say(f"{self.folder.name}: {len(filters)} filters of layer {i + 1}, {self.filters} ({seconds:.0f} s)")
        return layer

    @torch.no_grad()
    def _maps(self, i: int, below: list[Layer]) -> Tensor:
        """Return what layer i sees of some training images, in 0..1 from the second layer on."""
        x = some_images(self.train_images, self.recipe.n_images, generator=self.generator(10 * i + 1))
        if not below:
            return self.preparation(x)
        network = network_of(self.recipe, below, self._shape, self.units)
        return torch.cat([network.up(self.preparation(part) * self.levels) for part in x.split(50)]) / self.levels

    def _filters(self, i: int, y: Tensor, callbacks: Sequence[Callback], say: Message) -> Tensor | None:
        generator = self.generator(10 * i + 3)
        if self.filters != "learned":
            return unlearned_filters(self.filters, y, self.recipe.n_filters[i], generator=generator)
        folder = self.layer_folder(i)
        recorder = Recorder(folder, least=60.0, keeps_model=False)
        training = layer_training(self.recipe, i, y, self.units, generator=generator, callbacks=[recorder, *callbacks])
        if not recorder.run(training, on_message=say):
            return None
        return normalized(training.model.get_parameter("couplings.0.weight").detach().mT)

    def layer_folder(self, i: int) -> RunFolder:
        """Return the folder of the training of layer i."""
        path = self.folder / f"layer-{i + 1}"
        path.mkdir(exist_ok=True)
        return RunFolder(path)

    @property
    def _shape(self) -> tuple[int, ...]:
        channels, *sides = self.data.shape
        return (channels, *(side + 2 * self.recipe.border for side in sides))

    def network(self) -> DBN:
        """Return the network with the filters that were found."""
        found = self.parameters()
        layers = [Layer(found[f"{i}.weight"], found[f"{i}.bias"]) for i in range(len(self.recipe.groups))]
        return network_of(self.recipe, layers, self._shape, self.units)

    def score(self, *, reading: str = "mean", layers: Sequence[str] = ("1+2",), say: Message = quiet) -> dict[str, Any]:
        """Return the records of one reading for each choice of layers: found in the folder, else made and written."""
        self.begin()
        known = self.evaluation() or {}
        wanted = {f"{reading} {choice}": choice for choice in layers}
        missing = {key: choice for key, choice in wanted.items() if key not in known}
        if missing:
            known |= self._scored(reading, missing, say)
            self.write_evaluation(known)
        return {key: dict(known[key]) for key in wanted}

    def _scored(self, reading: str, wanted: dict[str, str], say: Message) -> dict[str, Any]:
        start, recipe, network = time.process_time(), self.recipe, self.network()
        chosen = {key: tuple(int(word) for word in choice.split("+")) for key, choice in wanted.items()}
        every = tuple(sorted({level for levels in chosen.values() for level in levels}))
        parts = {split: self._features(network, every, reading, split) for split in SPLITS}
        read = time.process_time() - start
        say(f"{self.folder.name}, {reading}: features read ({read:.0f} s)")
        records = {}
        for key, levels in chosen.items():
            begun = time.process_time()
            splits = [
                (torch.cat([parts[split][level] for level in levels], 1), self._labels(split)) for split in SPLITS
            ]
            result = svm_protocol(*splits, kernel=recipe.svm, costs=recipe.costs, width=recipe.width, n_rows=10_000)
            say(f"{self.folder.name}, {key}: {result}")
            records[key] = {
                "data": self.data.name,
                "levels": self.levels,
                "activation": self.activation,
                "filters": self.filters,
                "seed": self.seed,
                "reading": reading,
                "layers": wanted[key],
                "settings": self.settings()["recipe"],
                "cpu_seconds": read + time.process_time() - begun,
                "threads": torch.get_num_threads(),
                **result.as_record(),
            }
        return records

    def _features(self, network: DBN, levels: tuple[int, ...], reading: str, split: str) -> dict[int, Tensor]:
        """Return the features of each of these levels of a split, one row an image."""
        x = getattr(self.data, split)
        if x is None:
            raise ValueError(f"{self.data.name} has no {split} images, which the protocol needs.")
        rows = extract_features(
            network,
            x[: self._limit(split)],
            levels=levels,
            grid=self.recipe.grid,
            reading=reading,
            batch_size=8,  # what is read stays in the cache
            prepare=lambda part: self.preparation(part) * self.levels,
            generator=self.generator(3),
        )
        rows = rows.sqrt_() if self.recipe.root else rows
        widths = [network[level - 1].hidden.shape[0] * self.recipe.grid**2 for level in levels]
        return dict(zip(levels, rows.split(widths, 1), strict=True))

    def _labels(self, split: str) -> Tensor:
        labels = getattr(self.data, f"{split}_labels")
        if labels is None:
            raise ValueError(f"{self.data.name} has no labels of its {split} images, which the protocol needs.")
        return labels[: self._limit(split)]

    def _limit(self, split: str) -> int | None:
        """Return how many images of a split are used, None for all."""
        return {"train": self.images, "valid": self.images // 2, "test": 0}[split] or None

    def headline(self) -> str:
        """Return the test errors."""
        return ", ".join(f"error {record['error']:.2%} ({key})" for key, record in (self.evaluation() or {}).items())

    def sentences(self) -> list[str]:
        """Return the test errors in words."""
        lines = []
        for record in (self.evaluation() or {}).values():
            share = f"{record['error']:.2%} ± {record['standard_error']:.2%} of {record['n_test']:,} test images"
            layers = f"layer {record['layers']}" if len(record["layers"]) == 1 else f"layers {record['layers']}"
            read = f"N = {self.levels}, {self.activation}, {layers} read as {record['reading']}, filters {self.filters}"
            lines.append(f"A support vector machine on features of units with {read}, errs on {share}.")
        return lines

    def panels(self) -> list[Panel]:
        """Return the lowest filters, and the errors by the layers that are read."""
        network = self.network()
        caption = "The weights between a patch and the units of the lowest layer, all on one scale."
        shown = [
            Panel(
                "Filters", "What each unit looks for, each with both signs.", [Filters("filters", caption, network[0])]
            )
        ]
        records = self.evaluation() or {}
        if records:
            values = {key: 100 * record["error"] for key, record in records.items()}
            errors = {key: 100 * record["standard_error"] for key, record in records.items()}
            bars = Bars("errors", "By reading and layers.", values, "Test error", "percent", errors)
            shown.append(Panel("Test errors", "With two standard errors over the test images.", [bars]))
        return shown
