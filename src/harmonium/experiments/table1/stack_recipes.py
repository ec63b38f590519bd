"""The recipes of the paper's network for each data set, and the cell of a data set with one of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from harmonium.data import DATASETS
from harmonium.experiments.table1.stack_cell import StackCell
from harmonium.experiments.table1.stack_recipe import StackRecipe

_GRAY = StackRecipe(
    groups=(1, 1),
    sides=(5, 8),
    n_components=(0, 60),
    border=2,
    contrast_floor=None,
    eps=0.01,
    min_spread=0.3,
    grid=4,
    costs=(1e-3, 3e-3, 1e-2),
)
STACKS: dict[str, StackRecipe] = {
    "mnist": _GRAY,
    "fashion-mnist": dataclasses.replace(_GRAY, contrast_floor=0.03, eps=0.1),
    "cifar10": StackRecipe(groups=(1, 1), sides=(6, 8), n_components=(0, 100)),
}
"""How the features of each data set are made: small networks. Folders of pictures are treated as CIFAR-10 is."""


def stack_of(name: str, out: Path, *, rate: float | None = None, **settings: Any) -> StackCell:
    """Return a cell of the table in its folder `<out>/<data>-<levels>-<activation>-<filters>-<seed>`.

    `settings` are those of `StackCell`, `rate` another learning rate than the recipe's.
    """
    if name not in STACKS and name in DATASETS:
        raise ValueError(f"Table 1 has {', '.join(STACKS)}, or a folder with a folder a class. Got {name!r}.")
    recipe = STACKS.get(name, STACKS["cifar10"])
    # Patches are on a scale of N levels with the noise of one: few levels need all of them to learn at all.
    contrast = max(recipe.contrast, 1 / settings["levels"])
    recipe = dataclasses.replace(recipe, contrast=contrast, learning_rate=rate or recipe.learning_rate)
    words = [settings[key] for key in ("levels", "activation", "filters", "seed")]
    folder = out / "-".join([Path(name).name, *map(str, words)])
    return StackCell(folder=folder, recipe=recipe, data_name=name, **settings)
