"""The paper's network on small digits: its layers, its controls, its table."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from PIL import Image

from harmonium.data import Data, load
from harmonium.experiments import open_experiment
from harmonium.experiments.table1.filter_sources import SOURCES, normalized, spherical_means, unlearned_filters
from harmonium.experiments.table1.stack import LevelUnits, fit_basis, layer_of, network_of
from harmonium.experiments.table1.stack_cell import StackCell
from harmonium.experiments.table1.stack_recipe import StackRecipe
from harmonium.experiments.table1.stack_table import read_stacks, table_of_stacks
from harmonium.learning import Callback, Training
from harmonium.plots import write_panels

RECIPE = StackRecipe(
    groups=(2, 3),
    sides=(2, 2),
    kernels=(3, 2),
    n_components=(0, 10),
    border=1,
    n_images=300,
    n_patches=2000,
    epochs=2,
    batch_size=64,
    grid=2,
    costs=(1e-2,),
)


@pytest.fixture(scope="module")
def digits() -> Data:
    """600 digits to learn from, 200 to choose by, 400 to be tested on."""
    data = load("digits")
    sizes = [600, 200, 400]
    parts = [(data.train, data.train_labels), (data.valid, data.valid_labels), (data.test, data.test_labels)]
    x = torch.cat([part for part, _ in parts if part is not None])[:1200].view(-1, 1, 8, 8)
    y = torch.cat([labels for _, labels in parts if labels is not None])[:1200]
    return Data.of_splits("digits", x.split(sizes), y.split(sizes), kind="levels", levels=data.levels, note="for tests")


def cell_of(digits: Data, folder: Path, recipe: StackRecipe = RECIPE, **settings: object) -> StackCell:
    cell = StackCell(folder=folder, recipe=recipe, data_name="digits", **settings)  # type: ignore[arg-type]
    cell.data = digits
    return cell


def four_axes(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows near four directions at right angles to each other, of many lengths and both signs."""
    axes, _ = torch.linalg.qr(torch.randn(6, 4, generator=generator))
    place = torch.randint(4, (2000,), generator=generator)
    length = torch.randn(2000, 1, generator=generator)
    return axes.mT[place] * length + 0.01 * torch.randn(2000, 6, generator=generator), axes.mT


def test_k_means_finds_directions(generator: torch.Generator) -> None:
    rows, axes = four_axes(generator)
    found = spherical_means(rows[rows.norm(dim=1) > 0.2], 8, generator=generator)
    best = (axes @ found.mT).abs().amax(1)
    assert (best > 0.999).all()  # with two centers for each direction none is left out
    random = unlearned_filters("random", rows, 8, generator=generator)
    assert (axes @ random.mT).abs().amax(1).mean() < 0.9  # negative control


def test_components_are_ordered_axes(generator: torch.Generator) -> None:
    rows = torch.randn(4000, 3, generator=generator) * torch.tensor([1.0, 3.0, 2.0])
    found = unlearned_filters("components", rows, 2, generator=generator).abs()
    assert found.argmax(1).tolist() == [1, 2] and found.amax(1).min() > 0.98


@pytest.mark.parametrize("source", [s for s in SOURCES if s != "learned"])
def test_controls_have_length_one(source: str, generator: torch.Generator) -> None:
    rows = torch.randn(50, 6, generator=generator)
    filters = unlearned_filters(source, rows, 5, generator=generator)
    assert filters.shape == (5, 6) and torch.allclose(filters.norm(dim=1), torch.ones(5))
    if source == "patches":
        assert ((filters @ normalized(rows).mT).amax(1) > 0.9999).all()  # each is a row of the data
    with pytest.raises(ValueError, match="come from learned"):
        unlearned_filters("magic", rows, 5)


def test_a_basis_makes_components_white(generator: torch.Generator) -> None:
    patches = torch.randn(5000, 4, generator=generator) * torch.tensor([4.0, 2.0, 1.0, 0.1]) + 3
    recipe = dataclasses.replace(RECIPE, n_components=(0, 3), flatness=0.0)
    basis = fit_basis(recipe, 1, patches.reshape(-1, 4, 1, 1))
    y = basis.coordinates(patches.reshape(-1, 4, 1, 1))
    assert torch.allclose(y.mT @ y / len(y), torch.eye(3), atol=0.02)
    assert torch.equal(fit_basis(recipe, 0, patches).coordinates(patches), patches)


def test_a_unit_is_at_the_threshold_of_its_filter(generator: torch.Generator) -> None:
    """`h/N = clip((z - t)/r)` for a filter and for its negative, whatever the basis that it was found in."""
    patches = torch.randn(4000, 2, 2, 2, generator=generator) + 1
    recipe = dataclasses.replace(RECIPE, kernels=(2, 2), n_components=(5, 1), pools=(1, 1))
    basis = fit_basis(recipe, 0, patches)
    filters = normalized(torch.randn(3, 5, generator=generator))
    units = LevelUnits(255, None, "relu")
    network = network_of(recipe, [layer_of(recipe, 0, filters, basis, patches)], (2, 2, 2), units)
    z = basis.coordinates(patches) @ filters.mT
    deviations = torch.cat([z, -z], 1) / z.std()
    wanted = ((deviations - recipe.thresholds[0]) / recipe.reaches[0]).clamp(0, 1)
    assert torch.allclose(network.up(255 * patches).flatten(1) / 255, wanted, atol=1e-4)


def test_pooled_layers_pass_up_the_maximum(generator: torch.Generator) -> None:
    patches = torch.randn(500, 1, 3, 3, generator=generator)
    x = 255 * torch.randn(20, 1, 8, 8, generator=generator)
    units, tops = LevelUnits(255, None, "relu"), []
    for pools in ((1, 1), (2, 1)):
        recipe = dataclasses.replace(RECIPE, pools=pools)
        basis = fit_basis(recipe, 0, patches)
        layer = layer_of(recipe, 0, torch.eye(9)[:2], basis, patches)
        tops.append(network_of(recipe, [layer], (1, 8, 8), units).up(x))
    largest = torch.nn.functional.max_pool2d(tops[0], 2)
    assert tops[1].shape == (20, 4, 3, 3)
    assert torch.allclose(tops[1], largest, atol=0.02 * largest.max().item())
    assert not torch.allclose(tops[1], torch.nn.functional.avg_pool2d(tops[0], 2), atol=0.1 * largest.max().item())


class StopAfter(Callback):
    """Stops a training after some updates."""

    def __init__(self, updates: int) -> None:
        self.updates = updates

    def on_update(self, training: Training) -> None:
        training.stop = training.update >= self.updates


def test_a_stopped_stack_ends_with_the_same_filters(digits: Data, tmp_path: Path) -> None:
    whole, stopped = (cell_of(digits, tmp_path / name) for name in ("whole", "stopped"))
    assert whole.train()
    assert not stopped.train(callbacks=(StopAfter(40),))
    assert not (stopped.folder / "model.safetensors").exists()
    assert stopped.train()
    one, other = whole.parameters(), stopped.parameters()
    assert one.keys() == {"0.weight", "0.bias", "1.weight", "1.bias"}
    assert all(torch.equal(one[name], other[name]) for name in one)
    cells = cell_of(digits, tmp_path / "control", filters="patches")
    cells.train()
    assert not torch.equal(cells.parameters()["0.weight"], one["0.weight"])


def test_a_table_with_its_controls(digits: Data, tmp_path: Path) -> None:
    """Every source by the same pipeline; the differences are those of the images that each errs on."""
    for source in SOURCES:
        cell = cell_of(digits, tmp_path / source, filters=source)
        assert cell.train()
        records = cell.score(layers=("1", "2", "1+2"))
        assert list(records) == ["mean 1", "mean 2", "mean 1+2"]
        assert cell.score(layers=("1",))["mean 1"]["error"] == records["mean 1"]["error"]
    found = {(r["filters"], r["layers"]): r for r in read_stacks(tmp_path)}
    assert len(found) == 15
    table = table_of_stacks(found.values())
    one, other = (set(found[source, "1+2"]["wrong"]) for source in ("patches", "learned"))
    difference = 100 * (len(one) - len(other)) / 400
    row = next(line for line in table.splitlines() if "| 1+2 | patches |" in line)
    assert f"| {difference:+.2f} ± " in row
    assert found["learned", "1+2"]["error"] < 0.2 and found["learned", "1+2"]["n_train"] == 800
    cell = open_experiment(tmp_path / "learned")
    assert isinstance(cell, StackCell) and cell.recipe == RECIPE
    cell.data = digits
    write_panels(cell.folder, cell.sentences(), cell.settings(), cell.metrics(), cell.panels())
    assert "filters learned, errs on" in (cell.folder / "report.html").read_text()
    listed = cell.listed()
    assert "error" in listed.score and listed.n_epochs == listed.epochs == RECIPE.epochs


def test_a_folder_of_classes(tmp_path: Path) -> None:
    """The protocol of Caltech-101 on a made one: three kinds of stripes, 6 pictures of each to learn from."""
    generator = torch.Generator().manual_seed(0)
    waves = torch.arange(16.0)
    stripes = [waves[:, None].expand(16, 16), waves[None].expand(16, 16), waves[:, None] + waves[None]]
    for name, phase in zip(("across", "down", "slanted"), stripes, strict=True):
        (tmp_path / "classes" / name).mkdir(parents=True)
        for i in range(12):
            x = 128 + 100 * torch.sin(1.5 * phase + 6.28 * torch.rand((), generator=generator))
            noisy = (x + 10 * torch.randn(16, 16, generator=generator)).clamp(0, 255).to(torch.uint8)
            Image.fromarray(noisy.numpy()).save(tmp_path / "classes" / name / f"{i}.png")
    recipe = dataclasses.replace(RECIPE, border=0, kernels=(5, 2), n_patches=1000)
    folder = str(tmp_path / "classes")
    cell = StackCell(folder=tmp_path / "cell", recipe=recipe, data_name=folder, size=16, per_class=6)
    assert cell.train()
    record = cell.score()["mean 1+2"]
    assert (record["n_train"], record["n_test"]) == (18, 18)
    assert record["error"] < 0.2  # guessing errs on two of three
