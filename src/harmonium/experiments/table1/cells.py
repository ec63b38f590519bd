"""Table 1 of Hwang et al. 2020: test errors of a support vector machine on the features of N-level units."""

from __future__ import annotations

import dataclasses
import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import load_file
from safetensors.torch import save as tensors_to_bytes

from harmonium.data import Data, load
from harmonium.evaluation.classify.features import extract_features
from harmonium.evaluation.classify.svm_protocol import svm_protocol
from harmonium.experiments.table1.feature_recipe import (
    FeatureRecipe,
    Preparation,
    draw_training_patches,
    empty_filters,
    filter_training,
    fit_preparation,
    on_images,
)
from harmonium.learning import Callback
from harmonium.models import RBM
from harmonium.runs.atomic import remove_atomic, write_atomic
from harmonium.runs.checkpoints import Checkpoints, detached
from harmonium.runs.keeper import Keeper

PAPER: dict[str, dict[int, float]] = {
    "mnist": {1: 2.44, 255: 1.23},
    "fashion-mnist": {1: 13.12, 255: 9.26},
    "cifar10": {1: 58.72, 255: 35.78},
}
"""The test errors of the paper's table 1 in percent, by data set and number of levels N."""

_GRAY = FeatureRecipe(
    n_filters=128, border=2, contrast_floor=None, eps=0.01, min_spread=0.3, grid=4, svm="rbf", costs=(3.0, 10.0)
)
RECIPES: dict[str, FeatureRecipe] = {
    "mnist": _GRAY,
    "fashion-mnist": dataclasses.replace(_GRAY, contrast_floor=0.03, eps=0.1, root=True),
    "cifar10": FeatureRecipe(n_filters=256, costs=(3e-4, 1e-3, 3e-3)),
}
"""How the features of each data set are made; chosen on validation images with N = 255."""

MINUTES: dict[str, tuple[float, float]] = {
    "mnist": (0.8, 0.011),
    "fashion-mnist": (1.1, 0.0117),
    "cifar10": (0.2, 0.0148),
}
"""What a cell with N = 255, read by its states, takes on one core: whatever its filters, and for each of them."""


MEMORY = 3e9
"""The most bytes that the features of 70,000 images may take; fitting the machine takes about twice as many more."""


def within(name: str, budget: float) -> FeatureRecipe:
    """Return the recipe of a data set with as many filters as `budget` minutes on one core and `MEMORY` allow.

    >>> within("cifar10", 20).n_filters > within("cifar10", 5).n_filters
    True
    """
    recipe, (fixed, each) = RECIPES[name], MINUTES[name]
    most = MEMORY / (70_000 * 4 * recipe.grid**2)
    return dataclasses.replace(recipe, n_filters=max(16, 8 * round(min((budget - fixed) / each, most) / 8)))


Message = Callable[[str], None]


def cell_name(name: str, levels: int, seed: int, reading: str = "mean") -> str:
    """Return the name of a cell's file; that of its filters is the same for all readings.

    >>> cell_name("mnist", 255, 0), cell_name("mnist", 1, 0, "sample")
    ('mnist-255-0', 'mnist-1-0-sample')
    """
    return f"{name}-{levels}-{seed}" + ("" if reading == "mean" else f"-{reading}")


@dataclasses.dataclass(frozen=True, eq=False)
class Cell:
    """One cell of the table: a data set, a number of levels N, a seed and a recipe, with its files in a folder."""

    data: Data
    levels: int
    seed: int
    folder: Path
    recipe: FeatureRecipe

    @property
    def settings(self) -> dict[str, Any]:
        """The recipe as JSON has it."""
        settings: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self.recipe)))
        return settings

    @cached_property
    def preparation(self) -> Preparation:
        """From stored images to what the filters see."""
        data = self.data
        return fit_preparation(self.recipe, data.train, data.levels or 255, generator=self.generator(0))

    def generator(self, stage: int) -> torch.Generator:
        """Return the generator of a stage: stages do not depend on which of them were done before, nor on N."""
        return torch.Generator().manual_seed(1000 * self.seed + stage)

    def path(self, reading: str = "mean", suffix: str = ".json") -> Path:
        """Return the path of a file of this cell."""
        return self.folder / (cell_name(self.data.name, self.levels, self.seed, reading) + suffix)


def train_cell(
    cell: Cell, *, callbacks: Sequence[Callback] = (), on_message: Message | None = None
) -> tuple[RBM, float] | None:
    """Return the filters of a cell and the CPU seconds that they took: read if they are there, else learned.

    Killed at any moment and called again, learning goes on from its last checkpoint and ends with the same bits. None
    if a callback stopped it before the end. The same seed draws the same whitening, patches and first filters for every
    number of levels.
    """
    data, recipe, path = cell.data, cell.recipe, cell.path(suffix=".safetensors")
    note, folder = path.with_suffix(".settings.json"), path.with_suffix(".checkpoints")
    if note.is_file() and json.loads(note.read_bytes())["settings"] != cell.settings:
        raise ValueError(f"{note} was made with other settings. Choose another folder, or remove the files beside it.")
    cell.folder.mkdir(parents=True, exist_ok=True)
    keeper = Keeper(Checkpoints(folder))
    if path.is_file():
        rbm = empty_filters(recipe, data.shape[0], cell.levels)
        rbm.load_state_dict(load_file(path))
        return rbm, json.loads(note.read_bytes())["cpu_seconds"]
    write_atomic(note, json.dumps({"settings": cell.settings, "cpu_seconds": 0.0}).encode())
    patches = draw_training_patches(recipe, cell.preparation(data.train), generator=cell.generator(1))
    callbacks = [keeper, *callbacks]
    training = filter_training(recipe, patches, cell.levels, generator=cell.generator(2), callbacks=callbacks)
    if not keeper.run(training):
        return None
    seconds = keeper.cpu_seconds
    write_atomic(note, json.dumps({"settings": cell.settings, "cpu_seconds": seconds}).encode())
    write_atomic(path, tensors_to_bytes(detached(training.model.state_dict())))
    if folder.exists():
        remove_atomic(folder)
    if on_message is not None:
        on_message(f"{path.stem}: filters learned ({seconds:.0f} s)")
    return cast(RBM, training.model), seconds


def score_cell(cell: Cell, *, reading: str = "mean", on_message: Message | None = None) -> dict[str, Any]:
    """Return the record of a cell for one reading: found in its folder, else made and written; trains if it has to."""
    say = on_message or (lambda text: None)
    path, data, recipe = cell.path(reading), cell.data, cell.recipe
    if path.is_file():
        record: dict[str, Any] = json.loads(path.read_bytes())
        if record["settings"] == cell.settings:
            return record
        raise ValueError(f"{path} was made with other settings. Choose another folder, or remove that file.")
    trained = train_cell(cell, on_message=say)
    if trained is None:  # only a callback stops a training
        raise RuntimeError(f"The filters of {path.stem} are not learned to the end.")
    rbm, filter_seconds = trained
    cpu = time.process_time()
    network = on_images(rbm, (data.shape[0], *(side + 2 * recipe.border for side in data.shape[1:])))

    def features(split: str) -> tuple[torch.Tensor, torch.Tensor]:
        x, labels = getattr(data, split), getattr(data, f"{split}_labels")
        if x is None or labels is None:
            raise ValueError(f"{data.name} has no labeled {split} images, which the protocol needs.")
        rows = extract_features(
            network,
            x,
            grid=recipe.grid,
            reading=reading,
            batch_size=8,  # what is read stays in the cache
            prepare=lambda part: cell.preparation(part) * cell.levels,
            generator=cell.generator(3),
        )
        return rows.sqrt_() if recipe.root else rows, labels

    splits = [features(split) for split in ("train", "valid", "test")]
    say(f"{path.stem}: features read ({time.process_time() - cpu:.0f} s)")
    result = svm_protocol(*splits, kernel=recipe.svm, costs=recipe.costs, width=recipe.width, n_rows=10_000)
    record = {
        "data": data.name,
        "levels": cell.levels,
        "seed": cell.seed,
        "reading": reading,
        "settings": cell.settings,
        "filter_seconds": filter_seconds,
        "cpu_seconds": filter_seconds + time.process_time() - cpu,
        "threads": torch.get_num_threads(),
        **result.as_record(),
    }
    write_atomic(path, json.dumps(record, indent=2).encode() + b"\n")
    say(f"{path.stem}: {result}")
    return record


def load_for_table(name: str, data_dir: str | None = None) -> Data:
    """Load a data set of the table, with the last training images held out for validation."""
    if name not in PAPER:
        raise ValueError(f"Table 1 has {', '.join(PAPER)}. Got {name!r}.")
    return load(name, data_dir=data_dir)


def read_cells(folder: Path) -> list[dict[str, Any]]:
    """Return the records of all finished cells in a folder."""
    paths = (path for path in sorted(folder.glob("[!.]*.json")) if not path.name.endswith(".settings.json"))
    return [json.loads(path.read_bytes()) for path in paths]


def table_of(records: Iterable[dict[str, Any]]) -> str:
    """Return the records as a Markdown table next to the paper's numbers, one row a data set and N."""
    groups: dict[tuple[str, int, str], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["data"], record["levels"], record["reading"]), []).append(record)
    lines = [
        "| data | N | read as | test error | seeds | each | paper | CPU min a run |",
        "|---|---|---|---|---|---|---|---|",
    ]
    order = {name: i for i, name in enumerate(PAPER)}
    for (name, levels, reading), cells in sorted(groups.items(), key=lambda g: (order.get(g[0][0], 9), *g[0][1:])):
        cells = sorted(cells, key=lambda cell: cell["seed"])
        errors = [100 * cell["error"] for cell in cells]
        spread = f" ± {statistics.stdev(errors):.2f}" if len(errors) > 1 else ""
        paper = PAPER.get(name, {}).get(levels)
        minutes = statistics.mean(cell["cpu_seconds"] for cell in cells) / 60
        seeds, each = ", ".join(str(cell["seed"]) for cell in cells), ", ".join(f"{error:.2f}" for error in errors)
        shown = "-" if paper is None else f"{paper:.2f} %"
        mean = f"{statistics.mean(errors):.2f} %{spread}"
        lines.append(f"| {name} | {levels} | {reading} | {mean} | {seeds} | {each} | {shown} | {minutes:.1f} |")
    return "\n".join(lines) + "\n"
