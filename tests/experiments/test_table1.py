"""The features of N-level filters, on small digits."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from harmonium.data import Data, load
from harmonium.evaluation.classify.svm_protocol import svm_protocol
from harmonium.experiments.table1.cells import MEMORY, MINUTES, RECIPES, Cell, score_cell, table_of, train_cell, within
from harmonium.experiments.table1.feature_recipe import (
    FeatureRecipe,
    draw_training_patches,
    fit_preparation,
    learn_filters,
    on_images,
)
from harmonium.learning import Callback, Training
from harmonium.runs.checkpoints import Checkpoints

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


def pixels(data: Data) -> list[tuple[torch.Tensor, torch.Tensor]]:
    parts = [(data.train, data.train_labels), (data.valid, data.valid_labels), (data.test, data.test_labels)]
    return [(x.flatten(1).float(), y) for x, y in parts if x is not None and y is not None]


def test_features_beat_a_linear_classifier_on_pixels(digits: Data, tmp_path: Path) -> None:
    record = score_cell(Cell(digits, 255, 0, tmp_path, RECIPE))
    linear = svm_protocol(*pixels(digits), costs=RECIPE.costs)
    assert record["error"] + 2 * record["standard_error"] < linear.error
    assert record["n_test"] == 997


@pytest.mark.parametrize("levels", [1, 255])
def test_filters_learn(digits: Data, levels: int) -> None:
    generator = torch.Generator().manual_seed(0)
    prepare = fit_preparation(RECIPE, digits.train, 16, generator=generator)
    patches = draw_training_patches(RECIPE, prepare(digits.train), generator=generator)
    trained, _ = learn_filters(RECIPE, patches, levels, generator=generator)
    untrained, _ = learn_filters(dataclasses.replace(RECIPE, epochs=0), patches, levels, generator=generator)
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
        rbm, _ = learn_filters(recipe, patches, levels, generator=torch.Generator().manual_seed(1))
        h = rbm.hidden_mean(patches * levels)
        means.append((h / levels, rbm.visible_mean(h) / levels))
    assert torch.allclose(means[0][0], means[1][0], atol=1e-6)
    assert torch.allclose(means[0][1], means[1][1], atol=1e-5)


def test_filters_on_images_are_those_on_patches(digits: Data) -> None:
    x = torch.randn(2, 1, 7, 9, generator=torch.Generator().manual_seed(0))
    rbm, _ = learn_filters(dataclasses.replace(RECIPE, epochs=0), x[:, :, :4, :4], 255)
    wide = on_images(rbm, (1, 7, 9)).up(255 * x)
    assert wide.shape == (2, 48, 4, 6)
    assert torch.allclose(wide[:, :, 2:3, 5:6], rbm.hidden_mean(255 * x[:, :, 2:6, 5:9]), atol=1e-3)


def test_finished_cells_are_kept_and_stopped_ones_go_on(digits: Data, tmp_path: Path) -> None:
    cell = Cell(digits, 255, 3, tmp_path, SMALL)
    first = score_cell(cell)
    filters = cell.path(suffix=".safetensors")
    written = filters.stat().st_mtime_ns
    assert score_cell(cell) == json.loads(json.dumps(first))
    cell.path().unlink()  # as if it had been stopped after the filters
    again = score_cell(cell)
    assert filters.stat().st_mtime_ns == written
    assert again["error"] == first["error"]
    assert again["cpu_seconds"] > again["filter_seconds"] == first["filter_seconds"] > 0
    other = Cell(digits, 255, 3, tmp_path, dataclasses.replace(SMALL, grid=2))
    for work in (score_cell, train_cell):
        with pytest.raises(ValueError, match="other settings"):
            work(other)


class StopAfter(Callback):
    """Stops a training after some updates."""

    def __init__(self, updates: int) -> None:
        self.updates = updates

    def on_update(self, training: Training) -> None:
        training.stop = training.update >= self.updates


@pytest.mark.parametrize("levels", [1, 255])
def test_learning_that_was_stopped_ends_with_the_same_filters(digits: Data, levels: int, tmp_path: Path) -> None:
    """Stopped within the first epoch and at the end of the second, which has 16 updates."""
    whole, stopped = (Cell(digits, levels, 1, tmp_path / name, SMALL) for name in ("whole", "stopped"))
    train_cell(whole)
    halves = []
    for updates in (5, 32):
        assert train_cell(stopped, callbacks=(StopAfter(updates),)) is None
        assert not stopped.path(suffix=".safetensors").exists()
        tensors, values = Checkpoints(stopped.path(suffix=".checkpoints")).load() or ({}, {})
        assert values["update"] == updates
        halves.append(tensors["model.couplings.0.weight"])
    assert train_cell(stopped) is not None
    assert not stopped.path(suffix=".checkpoints").exists()
    files = [cell.path(suffix=".safetensors") for cell in (whole, stopped)]
    assert files[0].read_bytes() == files[1].read_bytes()
    final = load_file(files[0])["couplings.0.weight"]
    assert not any(torch.equal(half, final) for half in halves)  # there was something left to learn


def test_the_table_stands_next_to_the_papers() -> None:
    cells = [
        {"data": "mnist", "levels": 255, "seed": seed, "reading": "mean", "error": error, "cpu_seconds": 60.0}
        for seed, error in ((1, 0.010), (0, 0.008))
    ]
    assert "| mnist | 255 | mean | 0.90 % ± 0.14 | 0, 1 | 0.80, 1.00 | 1.23 % | 1.0 |" in table_of(cells)
