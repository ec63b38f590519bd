"""Table 1 of Hwang et al. 2020: test errors of a support vector machine on the features of N-level units."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from harmonium.evaluation.classify.features import extract_features
from harmonium.evaluation.classify.svm_protocol import svm_protocol
from harmonium.experiments.base import Experiment, Message, quiet
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
from harmonium.runs.folder import EVALUATION, MODEL, RunFolder
from harmonium.runs.panels import Bars, Filters, Panel
from harmonium.runs.recorder import Recorder

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


@dataclass(eq=False, kw_only=True)
class Cell(Experiment):
    """One cell of the table: a data set, a number of levels N, a seed and a recipe, in a folder of its own."""

    name: ClassVar[str] = "table1"
    recipe_type: ClassVar[type] = FeatureRecipe

    recipe: FeatureRecipe
    levels: int

    @cached_property
    def preparation(self) -> Preparation:
        """From stored images to what the filters see."""
        return fit_preparation(self.recipe, self.data.train, self.data.levels or 255, generator=self.generator(0))

    def train(self, *, callbacks: Sequence[Callback] = (), say: Message = quiet) -> bool:
        """Learn the filters.

        The same seed draws the same whitening, patches and first filters for every number of levels.
        """
        self.begin()
        if (self.folder / MODEL).is_file():
            return True
        with self.writing():
            recorder = Recorder(self, least=60.0, keeps_model=False)
            prepared = self.preparation(self.data.train)
            patches = draw_training_patches(self.recipe, prepared, generator=self.generator(1))
            training = filter_training(
                self.recipe, patches, self.levels, generator=self.generator(2), callbacks=[recorder, *callbacks]
            )
            if not recorder.run(training, on_message=say):
                return False
            self.write_model(dict(training.model.state_dict()))
            say(f"{self.folder.name}: filters learned ({recorder.cpu_seconds:.0f} s)")
        return True

    def filters(self) -> RBM:
        """Return the filters that were learned."""
        rbm = empty_filters(self.recipe, self.data.shape[0], self.levels)
        rbm.load_state_dict(self.parameters())
        return rbm

    def score(self, *, reading: str = "sample", say: Message = quiet) -> dict[str, Any]:
        """Return the record of one reading of the hidden units: found in the folder, else made and written."""
        self.begin()
        known = self.evaluation() or {}
        if reading not in known:
            known[reading] = self._scored(reading, say)
            self.write_evaluation(known)
        return dict(known[reading])

    def _scored(self, reading: str, say: Message) -> dict[str, Any]:
        data, recipe, rbm, before = self.data, self.recipe, self.filters(), self.cpu_seconds
        cpu = time.process_time()
        network = on_images(rbm, (data.shape[0], *(side + 2 * recipe.border for side in data.shape[1:])))

        def features(split: str) -> tuple[Tensor, Tensor]:
            x, labels = getattr(data, split), getattr(data, f"{split}_labels")
            if x is None or labels is None:
                raise ValueError(f"{data.name} has no labeled {split} images, which the protocol needs.")
            rows = extract_features(
                network,
                x,
                grid=recipe.grid,
                reading=reading,
                batch_size=8,  # what is read stays in the cache
                prepare=lambda part: self.preparation(part) * self.levels,
                generator=self.generator(3),
            )
            return rows.sqrt_() if recipe.root else rows, labels

        splits = [features(split) for split in ("train", "valid", "test")]
        say(f"{self.folder.name}, {reading}: features read ({time.process_time() - cpu:.0f} s)")
        result = svm_protocol(*splits, kernel=recipe.svm, costs=recipe.costs, width=recipe.width, n_rows=10_000)
        say(f"{self.folder.name}, {reading}: {result}")
        return {
            "data": data.name,
            "levels": self.levels,
            "seed": self.seed,
            "reading": reading,
            "settings": self.settings()["recipe"],
            "filter_seconds": before,
            "cpu_seconds": before + time.process_time() - cpu,
            "threads": torch.get_num_threads(),
            **result.as_record(),
        }

    def headline(self) -> str:
        """Return the test errors."""
        records = (self.evaluation() or {}).values()
        return ", ".join(f"error {record['error']:.2%} ({record['reading']})" for record in records)

    def sentences(self) -> list[str]:
        """Return the test errors beside the paper's."""
        paper = PAPER.get(self.data_name, {}).get(self.levels)
        beside = "" if paper is None else f" The paper has {paper:.2f} %."
        lines = []
        for record in (self.evaluation() or {}).values():
            share = f"{record['error']:.2%} ± {record['standard_error']:.2%} of {record['n_test']:,} test images"
            read = f"N = {self.levels}, read as {record['reading']}"
            lines.append(f"A support vector machine on features of units with {read}, errs on {share}.{beside}")
        return lines

    def panels(self) -> list[Panel]:
        """Return the filters, and the errors beside the paper's."""
        caption = "The weights between a patch and one hidden unit each, all on one scale."
        shown = [Panel("Filters", "What each hidden unit looks for.", [Filters("filters", caption, self.filters())])]
        records = (self.evaluation() or {}).values()
        if records:
            values = {record["reading"]: 100 * record["error"] for record in records}
            errors = {record["reading"]: 100 * record["standard_error"] for record in records}
            paper = PAPER.get(self.data_name, {}).get(self.levels)
            values |= {} if paper is None else {"paper": paper}
            bars = Bars("errors", "By how the hidden units are read.", values, "Test error", "percent", errors)
            shown.append(Panel("Test errors", "With two standard errors over the test images.", [bars]))
        return shown


def cell_of(
    name: str, levels: int, seed: int, out: Path, budget: float | None = None, data_dir: str | None = None
) -> Cell:
    """Return a cell of the table in its folder `<out>/<data>-<levels>-<seed>`, within `budget` minutes if given."""
    if name not in PAPER:
        raise ValueError(f"Table 1 has {', '.join(PAPER)}. Got {name!r}.")
    recipe, folder = RECIPES[name] if budget is None else within(name, budget), out / f"{name}-{levels}-{seed}"
    return Cell(folder=folder, recipe=recipe, data_name=name, seed=seed, levels=levels, data_dir=data_dir)


def read_cells(folder: Path) -> list[dict[str, Any]]:
    """Return the records of all finished cells in a folder."""
    paths = sorted(path.parent for path in folder.glob(f"*/{EVALUATION}"))
    return [record for path in paths for record in (RunFolder(path).evaluation() or {}).values()]


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
