"""The features of N-level filters, on small digits."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from harmonium.data import Data, load
from harmonium.evaluation.classify.svm_protocol import svm_protocol
from harmonium.experiments import open_experiment
from harmonium.experiments.table1.cell import MEMORY, MINUTES, RECIPES, Cell, read_cells, table_of, within
from harmonium.experiments.table1.feature_recipe import (
    FeatureRecipe,
    draw_training_patches,
    filter_training,
    fit_preparation,
    on_images,
)
from harmonium.learning import Callback, Training
from harmonium.plots import write_panels

RECIPE = FeatureRecipe(
    n_filters=48,
    kernel=4,
    border=2,
    n_patches=10_000,
    epochs=4,
    batch_size=64,
    learning_rate=3e-3,
    grid=3,
    costs=(1e-3, 1e-2, 1e-1),
)
SMALL = dataclasses.replace(RECIPE, n_filters=8, n_patches=1000, epochs=3)


@pytest.fixture(scope="module")
def digits() -> Data:
    """600 digits to learn from, 200 to choose by, 997 to be tested on."""
    data = load("digits")
    x = torch.cat([part for part in (data.train, data.valid, data.test) if part is not None])
    y = torch.cat([part for part in (data.train_labels, data.valid_labels, data.test_labels) if part is not None])
    sizes = [600, 200, len(x) - 800]
    images = x.view(-1, 1, 8, 8)
    return Data.of_splits(
        "digits", images.split(sizes), y.split(sizes), kind="levels", levels=data.levels, note="for tests"
    )


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def cell_of(digits: Data, folder: Path, levels: int = 255, seed: int = 0, recipe: FeatureRecipe = RECIPE) -> Cell:
    cell = Cell(folder=folder, recipe=recipe, data_name="digits", seed=seed, levels=levels)
    cell.data = digits
    return cell


def learn_filters(
    recipe: FeatureRecipe, patches: torch.Tensor, levels: int, *, generator: torch.Generator | None = None
) -> Any:
    training = filter_training(recipe, patches, levels, generator=generator)
    training.run()
    return training.model


def pixels(data: Data) -> list[tuple[torch.Tensor, torch.Tensor]]:
    parts = [(data.train, data.train_labels), (data.valid, data.valid_labels), (data.test, data.test_labels)]
    return [(x.flatten(1).float(), y) for x, y in parts if x is not None and y is not None]


def test_features_beat_a_linear_classifier_on_pixels(digits: Data, tmp_path: Path) -> None:
    cell = cell_of(digits, tmp_path / "cell")
    assert cell.train()
    record = cell.score(reading="mean")
    linear = svm_protocol(*pixels(digits), costs=RECIPE.costs)
    assert record["error"] + 2 * record["standard_error"] < linear.error
    assert record["n_test"] == 997


@pytest.mark.parametrize("levels", [1, 255])
def test_filters_learn(digits: Data, levels: int) -> None:
    generator = torch.Generator().manual_seed(0)
    prepare = fit_preparation(RECIPE, digits.train, 16, generator=generator)
    patches = draw_training_patches(RECIPE, prepare(digits.train), generator=generator)
    trained = learn_filters(RECIPE, patches, levels, generator=generator)
    untrained = learn_filters(dataclasses.replace(RECIPE, epochs=0), patches, levels, generator=generator)
    before, after = (
        (rbm.reconstruct(patches * levels) / levels - patches).square().mean() / patches.square().mean()
        for rbm in (untrained, trained)
    )
    assert after < 0.93 * before  # N = 1 explains 14 % of the patches, N = 255 64 %
    assert before > 0.95


def test_more_minutes_are_more_filters() -> None:
    assert set(MINUTES) == set(RECIPES)
    fixed, each = MINUTES["cifar10"]
    assert within("cifar10", fixed + 800 * each) == dataclasses.replace(RECIPES["cifar10"], n_filters=800)
    assert within("cifar10", 0.1).n_filters == 16
    assert within("mnist", 1e6).n_filters * 16 * 4 * 70_000 < 1.01 * MEMORY  # hours do not fill the memory


def test_levels_change_the_noise_and_nothing_else(digits: Data) -> None:
    """With the same weights, N = 1 and N = 255 have the same means on the scale 0..1."""
    patches = torch.randn(20, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    recipe = dataclasses.replace(RECIPE, epochs=0)
    means = []
    for levels in (1, 255):
        rbm = learn_filters(recipe, patches, levels, generator=torch.Generator().manual_seed(1))
        h = rbm.hidden_mean(patches * levels)
        means.append((h / levels, rbm.visible_mean(h) / levels))
    assert torch.allclose(means[0][0], means[1][0], atol=1e-6)
    assert torch.allclose(means[0][1], means[1][1], atol=1e-5)


def test_filters_on_images_are_those_on_patches(digits: Data) -> None:
    x = torch.randn(2, 1, 7, 9, generator=torch.Generator().manual_seed(0))
    rbm = learn_filters(dataclasses.replace(RECIPE, epochs=0), x[:, :, :4, :4], 255)
    wide = on_images(rbm, (1, 7, 9)).up(255 * x)
    assert wide.shape == (2, 48, 4, 6)
    assert torch.allclose(wide[:, :, 2:3, 5:6], rbm.hidden_mean(255 * x[:, :, 2:6, 5:9]), atol=1e-3)


def test_finished_cells_are_kept_and_stopped_ones_go_on(digits: Data, tmp_path: Path) -> None:
    cell = cell_of(digits, tmp_path / "cell", seed=3, recipe=SMALL)
    with pytest.raises(ValueError, match="has no model yet"):
        cell.score()
    assert cell.train()
    first = cell.score()
    filters, scores = cell.folder / "model.safetensors", cell.folder / "evaluation.json"
    written = filters.stat().st_mtime_ns
    assert cell.score() == json.loads(json.dumps(first))
    scores.unlink()  # as if it had been stopped after the filters
    assert cell.train() and filters.stat().st_mtime_ns == written
    again = cell.score()
    assert again["error"] == first["error"]
    assert again["cpu_seconds"] > again["filter_seconds"] == first["filter_seconds"] > 0
    assert cell.score(reading="mean")["reading"] == "mean"
    assert [record["reading"] for record in read_cells(tmp_path)] == ["sample", "mean"]
    other = cell_of(digits, cell.folder, seed=3, recipe=dataclasses.replace(SMALL, grid=2))
    for work in (other.score, other.train):
        with pytest.raises(ValueError, match="other settings"):
            work()


def test_a_cell_is_a_run(digits: Data, tmp_path: Path) -> None:
    """Its folder has the files of any run, it is opened from them with its settings, and it has a report."""
    recipe = dataclasses.replace(SMALL, contrast_floor=None)
    cell = cell_of(digits, tmp_path / "cell", levels=3, recipe=recipe)
    cell.train()
    cell.score(reading="mean")
    names = {"config.toml", "metrics.jsonl", "timing.jsonl", "model.safetensors", "checkpoints", "evaluation.json"}
    assert {path.name for path in cell.folder.iterdir()} == names | {".lock"}
    found = open_experiment(cell.folder)
    assert isinstance(found, Cell) and found.recipe == recipe and found.levels == 3
    found.begin()  # the same settings
    listed = found.listed()
    assert (listed.data, listed.model, listed.n_epochs, listed.epochs) == ("digits", "table1", 3, 3)
    assert "error" in listed.score and "(mean)" in listed.score
    found.data = digits
    write_panels(found.folder, found.sentences(), found.settings(), found.metrics(), found.panels())
    text = (cell.folder / "report.html").read_text()
    assert "N = 3, read as mean, errs on" in text and "Test errors" in text
    assert {"filters.png", "errors.png"} <= {path.name for path in (cell.folder / "figures").iterdir()}


class StopAfter(Callback):
    """Stops a training after some updates."""

    def __init__(self, updates: int) -> None:
        self.updates = updates

    def on_update(self, training: Training) -> None:
        training.stop = training.update >= self.updates


@pytest.mark.parametrize("levels", [1, 255])
def test_learning_that_was_stopped_ends_with_the_same_filters(digits: Data, levels: int, tmp_path: Path) -> None:
    """Stopped within the first epoch and at the end of the second, which has 16 updates."""
    whole, stopped = (cell_of(digits, tmp_path / name, levels, 1, SMALL) for name in ("whole", "stopped"))
    assert whole.train()
    halves = []
    for updates in (5, 32):
        assert not stopped.train(callbacks=(StopAfter(updates),))
        assert not (stopped.folder / "model.safetensors").exists()
        tensors, values = stopped.checkpoints.load() or ({}, {})
        assert values["update"] == updates
        halves.append(tensors["learned.model.couplings.0.weight"])
    assert stopped.train()
    for name in ("model.safetensors", "metrics.jsonl"):
        assert (whole.folder / name).read_bytes() == (stopped.folder / name).read_bytes()
    final = whole.parameters()["couplings.0.weight"]
    assert not any(torch.equal(half, final) for half in halves)  # there was something left to learn


def test_the_table_stands_next_to_the_papers() -> None:
    cells = [
        {"data": "mnist", "levels": 255, "seed": seed, "reading": "mean", "error": error, "cpu_seconds": 60.0}
        for seed, error in ((1, 0.010), (0, 0.008))
    ]
    assert "| mnist | 255 | mean | 0.90 % ± 0.14 | 0, 1 | 0.80, 1.00 | 1.23 % | 1.0 |" in table_of(cells)
