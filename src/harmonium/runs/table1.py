"""Table 1 of Hwang et al. 2020: test errors of a support vector machine on the features of N-level units."""

from __future__ import annotations

import dataclasses
import json
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from safetensors.torch import save as tensors_to_bytes

from harmonium.couplings import Conv2d
from harmonium.data import Data, load
from harmonium.evaluation.features import extract_features
from harmonium.evaluation.svm_protocol import svm_protocol
from harmonium.models import RBM
from harmonium.models.dbn_spec import units_with_levels
from harmonium.runs.atomic import write_atomic
from harmonium.runs.feature_recipe import (
    FeatureRecipe,
    draw_training_patches,
    fit_preparation,
    learn_filters,
    on_images,
)
from harmonium.units import Gaussian

PAPER: dict[str, dict[int, float]] = {
    "mnist": {1: 2.44, 255: 1.23},
    "fashion-mnist": {1: 13.12, 255: 9.26},
    "cifar10": {1: 58.72, 255: 35.78},
}
"""The test errors of the paper's table 1 in percent, by data set and number of levels N."""

_GRAY = FeatureRecipe(
    n_filters=200, border=2, contrast_floor=None, eps=0.01, min_spread=0.3, grid=4, svm="rbf", costs=(3.0, 10.0)
)
RECIPES: dict[str, FeatureRecipe] = {
    "mnist": _GRAY,
    "fashion-mnist": dataclasses.replace(_GRAY, contrast_floor=0.03, eps=0.1, root=True),
    "cifar10": FeatureRecipe(n_filters=400, grid=2),
}
"""How the features of each data set are made; chosen on validation images."""

MINUTES: dict[str, float] = {"mnist": 3.0, "fashion-mnist": 4.0, "cifar10": 5.0}
"""What a cell takes with its recipe on one core."""

Message = Callable[[str], None]


def cell_name(name: str, levels: int, seed: int, reading: str = "mean") -> str:
    """Return the name of a cell's file; that of its filters is the same for all readings.

    >>> cell_name("mnist", 255, 0), cell_name("mnist", 1, 0, "sample")
    ('mnist-255-0', 'mnist-1-0-sample')
    """
    return f"{name}-{levels}-{seed}" + ("" if reading == "mean" else f"-{reading}")


def score_cell(
    data: Data,
    levels: int,
    seed: int,
    folder: Path,
    *,
    recipe: FeatureRecipe,
    reading: str = "mean",
    on_message: Message | None = None,
) -> dict[str, Any]:
    """Return the record of one cell of the table: read from `folder` if it is there, else trained, scored and written.

    Filters are written as soon as they are learned: a cell that was stopped later goes on from them. The same seed
    draws the same whitening, patches and filters for every number of levels.
    """
    say = on_message or (lambda text: None)
    stem = cell_name(data.name, levels, seed, reading)
    path = folder / f"{stem}.json"
    settings = json.loads(json.dumps(dataclasses.asdict(recipe)))
    if path.is_file():
        record: dict[str, Any] = json.loads(path.read_bytes())
        if record["settings"] == settings:
            return record
        raise ValueError(f"{path} was made with other settings. Choose another folder, or remove that file.")
    folder.mkdir(parents=True, exist_ok=True)
    wall, cpu = time.perf_counter(), time.process_time()
    generator = torch.Generator().manual_seed(seed)
    prepare = fit_preparation(recipe, data.train, data.levels or 255, generator=generator)
    held = folder / f"{cell_name(data.name, levels, seed)}.safetensors"
    rbm, trained = _filters(recipe, data, prepare, levels, held, settings, generator)
    say(f"{stem}: filters {'learned' if trained else 'found'} ({time.process_time() - cpu:.0f} s)")
    size = tuple(side + 2 * recipe.border for side in data.shape[1:])
    network = on_images(rbm, (data.shape[0], *size))

    def features(split: str) -> tuple[torch.Tensor, torch.Tensor]:
        x, labels = getattr(data, split), getattr(data, f"{split}_labels")
        if x is None or labels is None:
            raise ValueError(f"{data.name} has no labeled {split} images, which the protocol needs.")
        rows = extract_features(
            network,
            x,
            grid=recipe.grid,
            reading=reading,
            batch_size=32,
            prepare=lambda part: prepare(part) * levels,
            generator=torch.Generator().manual_seed(seed),  # the same draws for a cell that goes on
        )
        return rows.sqrt_() if recipe.root else rows, labels

    splits = [features(split) for split in ("train", "valid", "test")]
    say(f"{stem}: features read ({time.process_time() - cpu:.0f} s)")
    result = svm_protocol(*splits, kernel=recipe.svm, costs=recipe.costs, width=recipe.width, n_rows=10_000)
    record = {
        "data": data.name,
        "levels": levels,
        "seed": seed,
        "reading": reading,
        "settings": settings,
        "trained": trained,
        "cpu_seconds": time.process_time() - cpu,
        "wall_seconds": time.perf_counter() - wall,
        "threads": torch.get_num_threads(),
        **result.as_record(),
    }
    write_atomic(path, json.dumps(record, indent=2).encode() + b"\n")
    say(f"{stem}: {result}")
    return record


def _filters(
    recipe: FeatureRecipe,
    data: Data,
    prepare: Callable[[torch.Tensor], torch.Tensor],
    levels: int,
    path: Path,
    settings: dict[str, Any],
    generator: torch.Generator,
) -> tuple[RBM, bool]:
    """Return the filters of a cell and whether they were learned now."""
    note = path.with_suffix(".settings.json")
    if path.is_file() and note.is_file() and json.loads(note.read_bytes()) == settings:
        channels, size = data.shape[0], recipe.kernel
        make = units_with_levels(levels, k=1.0 / levels)
        coupling = Conv2d(channels, recipe.n_filters, kernel=size)
        rbm = RBM(Gaussian(channels, size, size), make(recipe.n_filters, 1, 1), coupling)
        rbm.load_state_dict(load_file(path))
        return rbm, False
    patches = draw_training_patches(recipe, prepare(data.train), generator=generator)
    rbm, _history = learn_filters(recipe, patches, levels, generator=generator)
    write_atomic(path, tensors_to_bytes({k: v.detach().contiguous() for k, v in rbm.state_dict().items()}))
    write_atomic(note, json.dumps(settings).encode())
    return rbm, True


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
