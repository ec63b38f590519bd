"""The recipes of the paper's network for each data set, and the cell of a data set with one of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from harmonium.data import DATASETS
from harmonium.experiments.table1.stack_cell import StackCell
from harmonium.experiments.table1.stack_recipe import StackRecipe

_GRAY = StackRecipe(
    groups=(1, 2),
    sides=(6, 8),
    n_components=(0, 100),
    border=2,
    contrast_floor=None,
    eps=0.01,
    min_spread=0.3,
    grid=4,
    costs=(3e-4, 1e-3, 3e-3),
)
STACKS: dict[str, StackRecipe] = {
    "mnist": _GRAY,
    "fashion-mnist": dataclasses.replace(_GRAY, contrast_floor=0.03, eps=0.1),
    "cifar10": StackRecipe(groups=(2, 2), sides=(5, 9), n_components=(0, 150)),
}
"""How the features of each data set are made; other image sets and folders are treated as CIFAR-10."""


def stack_of(name: str, out: Path, *, rate: float | None = None, **settings: Any) -> StackCell:
    """Return a cell of the table in its folder `<out>/<data>-<levels>-<activation>-<filters>-<seed>`.

    `settings` are those of `StackCell`, `rate` another learning rate than the recipe's.
    """
    if name not in STACKS and name in DATASETS:
        raise ValueError(f"Table 1 has {', '.join(STACKS)}, or a folder with a folder a class. Got {name!r}.")
    recipe = STACKS.get(name, STACKS["cifar10"])
    recipe = recipe if rate is None else dataclasses.replace(recipe, learning_rate=rate)
    words = [settings[key] for key in ("levels", "activation", "filters", "seed")]
    folder = out / "-".join([Path(name).name, *map(str, words)])
    return StackCell(folder=folder, recipe=recipe, data_name=name, **settings)
