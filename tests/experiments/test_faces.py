"""The experiment on faces, small: closed forms of the lower machine, learning, exact resume, and the table."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from harmonium.data import Data
from harmonium.evaluation.images.feature_network import FeatureNetwork
from harmonium.evaluation.images.frechet import frechet_distance
from harmonium.experiments import Faces, open_experiment
from harmonium.experiments.faces import pictures as pictures_module
from harmonium.experiments.faces.network import (
    images_of,
    reconstruct_faces,
    sample_faces,
    top_machine,
)
from harmonium.experiments.faces.pictures import color_faces, face_panels, gray_of, walks
from harmonium.experiments.faces.recipe import FaceRecipe
from harmonium.experiments.faces.scores import draw_all, table_of_faces
from harmonium.laws.principal import PCAGaussian
from harmonium.learning import Callback, Training
from harmonium.learning.starts import principal_machine
from harmonium.models import DBN
from harmonium.plots import write_panels
from harmonium.runs.panels import ImageRows, Lines
from harmonium.samplers import sample

RECIPE = FaceRecipe(
    n_components=7,
    n_hidden=32,
    epochs=40,
    minutes=0.1,
    batch_size=100,
    n_chains=100,
    learning_rate=0.01,
    average=0.99,
    norm=1.5,
)
PIXELS = FeatureNetwork("pixels", nn.Flatten(), 192)


def blobs(n: int, generator: torch.Generator) -> Tensor:
    """Color images 8 x 8 of one bright blob, of one of two colors, at one of four places, with a little noise."""
    place = torch.randint(4, (n,), generator=generator)
    color = torch.tensor([[0.9, 0.8, 0.2], [0.3, 0.2, 0.7]])[torch.randint(2, (n,), generator=generator)]
    x = torch.full((n, 3, 8, 8), 0.1)
    for i, (p, c) in enumerate(zip(place.tolist(), color, strict=True)):
        row, column = 4 * (p // 2), 4 * (p % 2)
        x[i, :, row : row + 4, column : column + 4] = c[:, None, None]
    return (x + 0.03 * torch.randn(x.shape, generator=generator)).clamp(0, 1)


@pytest.fixture(scope="module")
def data() -> Data:
    x = (blobs(1200, torch.Generator().manual_seed(1)) * 255).round().to(torch.uint8)
    return Data.of_splits("blobs", x.split([1000, 100, 100]), kind="levels", levels=255, note="blobs")


MODEL = "model.safetensors"


def faces_of(data: Data, folder: Path, recipe: FaceRecipe = RECIPE, **options: Any) -> Faces:
    run = Faces(folder=folder, recipe=recipe, data_name="blobs", size=8, n_samples=400, n_steps=100, **options)
    run.data = data
    return run


def test_the_lower_machine_is_probabilistic_pca(generator: torch.Generator) -> None:
    """Its marginal covariance has the largest eigenvalues of the data's, and their mean elsewhere."""
    axes = torch.linalg.qr(torch.randn(6, 6, dtype=torch.float64, generator=generator)).Q
    x = torch.randn(5000, 6, dtype=torch.float64, generator=generator) * torch.tensor([4.0, 2.0, 1.5, 0.3, 0.2, 0.1])
    x = (x @ axes.T + 3).float()
    rbm = principal_machine(x, 3)
    s2, t2 = rbm.visible.sigma.square(), rbm.hidden.sigma.square()  # type: ignore[union-attr, operator]
    weight = (rbm.weight / s2[:, None] / t2).double()
    precision = torch.diag(1 / s2).double() - weight @ torch.diag(t2).double() @ weight.T
    values = torch.linalg.eigvalsh(torch.cov(x.double().T, correction=0)).flip(0)
    expected = torch.cat([values[:3], values[3:].mean().expand(3)])
    torch.testing.assert_close(torch.linalg.eigvalsh(precision.inverse()).flip(0), expected, rtol=1e-3, atol=1e-5)
    code = rbm.hidden_mean(x)
    torch.testing.assert_close(code.mean(0), torch.zeros(3), atol=1e-3, rtol=0)
    torch.testing.assert_close(code.var(0, correction=0), torch.ones(3), rtol=1e-3, atol=0)
    shrunk = 1 - expected[3] / expected[:3]
    fitted = PCAGaussian.fit(x, 3)
    coordinates = (rbm.reconstruct(x) - fitted.mean) @ fitted.components.T
    torch.testing.assert_close(
        coordinates, (x - fitted.mean) @ fitted.components.T * shrunk.float(), rtol=1e-2, atol=1e-3
    )


def test_as_many_components_as_values_lose_nothing(generator: torch.Generator) -> None:
    """Codes of variance 1 that come back within a hundredth, the least of them too; one component fewer loses more."""
    x = torch.randn(2000, 5, generator=generator) * torch.tensor([40.0, 10.0, 3.0, 1.1, 1.0]) + 100
    whole, fewer = principal_machine(x, 5), principal_machine(x, 4)
    torch.testing.assert_close(whole.hidden_mean(x).var(0, correction=0), torch.ones(5), rtol=1e-3, atol=0)
    lost = [((rbm.reconstruct(x) - x).square().mean(0) / x.var(0)) for rbm in (whole, fewer)]
    assert lost[0].max() < 0.011**2 and lost[1].max() > 0.5


def test_more_components_than_vary_are_refused() -> None:
    with pytest.raises(ValueError, match="n_components"):
        principal_machine(torch.eye(8), 8)


def test_gray_is_kept_and_color_found(data: Data) -> None:
    """Gray values stay those given; colors are nearer to the truth than gray, and than those of the mean image."""
    dbn = DBN([principal_machine(data.train.float() / 255, RECIPE.n_components), top_machine(RECIPE)])
    assert data.test is not None
    test = data.test.float() / 255
    colored, mean_colors = (color_faces(dbn, gray_of(test), n_steps=n) for n in (100, 0))
    assert (gray_of(colored) - gray_of(test)).abs().mean() < 0.01
    error, plain, gray = (
        (x - test).square().mean().item() for x in (colored, mean_colors, gray_of(test).expand(-1, 3, -1, -1))
    )
    assert error < min(plain, gray)


@pytest.fixture(scope="module")
def finished(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Faces:
    run = faces_of(data, tmp_path_factory.mktemp("runs") / "faces")
    assert run.train()
    run.score(network=PIXELS)
    return run


def test_samples_are_nearer_to_data_than_noise(finished: Faces, data: Data) -> None:
    real = data.train.float().flatten(1) / 255
    distance = {name: frechet_distance(real, x.flatten(1)) for name, x in draw_all(finished).items()}
    assert distance["dbn"] < 0.5 * distance["noise"]
    untrained = DBN([*list(finished.network())[:-1], top_machine(RECIPE, generator=finished.generator(7))])
    before = sample_faces(untrained, 400, n_steps=100, generator=finished.generator(1))
    assert distance["dbn"] < frechet_distance(real, before.flatten(1))  # negative control: learning did it


class StopAt(Callback):
    """Stop at an update."""

    def __init__(self, update: int) -> None:
        self.at = update

    def on_update(self, training: Training) -> None:
        if training.update == self.at:
            training.stop = True


def test_a_stopped_run_ends_with_the_same_bits(finished: Faces, data: Data, tmp_path: Path) -> None:
    run = faces_of(data, tmp_path / "stopped")
    assert not run.train(callbacks=(StopAt(133),))
    assert not (run.folder / MODEL).exists() and run.n_epochs == 6
    assert run.train()
    for name in (MODEL, "metrics.jsonl", "lower/model.safetensors", "curve/epoch-000005.safetensors"):
        assert (run.folder / name).read_bytes() == (finished.folder / name).read_bytes()
    with pytest.raises(ValueError, match="other settings"):
        faces_of(data, run.folder, seed=1).begin()
    faces_of(data, run.folder, data_dir="elsewhere").begin()  # where the data are decides nothing


@pytest.fixture(scope="module")
def convolutional(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Faces:
    recipe = dataclasses.replace(RECIPE, layers="conv 8 4x4/2", layer_epochs=10, epochs=20)
    run = faces_of(data, tmp_path_factory.mktemp("runs") / "conv", recipe, data_dir="nowhere")
    assert run.train()
    return run


def test_a_convolutional_network_learns(convolutional: Faces, data: Data) -> None:
    """Its first level knows the images, its codes most of what varies, and its samples are nearer than noise."""
    dbn = convolutional.network()
    assert data.test is not None
    assert dbn.shapes == [(3, 8, 8), (8, 4, 4), (7,), (32,)]
    x, test = data.train.float() / 255, data.test.float() / 255
    spread = (test - x.mean(0)).square().mean()
    shares = [((reconstruct_faces(dbn, test, depth) - test).square().mean() / spread).item() for depth in (1, 2)]
    assert shares[0] < 0.1 and shares[1] < 0.2
    drawn = draw_all(convolutional)
    near, far = (frechet_distance(x.flatten(1), drawn[name].flatten(1)) for name in ("dbn", "noise"))
    assert near < 0.5 * far
    shown = pictures(convolutional)
    assert list(shown["reconstructions"]) == ["data", "from level 1", "from level 2", "from level 3"]
    gray = gray_of(shown["colored"]["original"])
    assert (gray_of(shown["colored"]["colored"]) - gray).abs().mean() < 0.01


@pytest.mark.parametrize("update", [77, 333])  # in the convolutional machines, and in the top one
def test_a_convolutional_run_resumes_exactly(convolutional: Faces, data: Data, tmp_path: Path, update: int) -> None:
    run = faces_of(data, tmp_path / "run", convolutional.recipe)
    assert not run.train(callbacks=(StopAt(update),))
    assert run.train()
    assert (run.folder / MODEL).read_bytes() == (convolutional.folder / MODEL).read_bytes()


@pytest.fixture(scope="module")
def tuned(data: Data, tmp_path_factory: pytest.TempPathFactory) -> Faces:
    layers = "conv 16 4x4/2, dense 24, dense 8"
    recipe = dataclasses.replace(RECIPE, layers=layers, tune_epochs=4, epochs=20, activation="relu", tune_rate=0.01)
    run = faces_of(data, tmp_path_factory.mktemp("runs") / "paper", recipe, data_dir="nowhere")
    assert run.train()
    return run


def test_a_multinary_stack_that_is_tuned_generates(tuned: Faces, data: Data) -> None:
    """Its samples vary as the data do and are of all modes; those of its own top machine of 255 levels do not vary."""
    dbn = tuned.network()
    assert dbn.shapes == [(3, 8, 8), (16, 4, 4), (24,), (8,), (7,), (32,)] and len(dbn.recognition) == 3
    x, drawn = data.train.float() / 255, draw_all(tuned)
    spread = x.std(0).mean()
    assert drawn["dbn"].std(0).mean() > 0.8 * spread
    places = drawn["dbn"].mean(1).view(-1, 2, 4, 2, 4).mean((2, 4)).flatten(1)
    counts = places.argmax(1).bincount(minlength=4)
    assert counts.min() > 40 and drawn["dbn"][:, 2].gt(0.5).any((1, 2)).float().mean() > 0.2  # of 400: places, colors
    stack = DBN([*dbn][:3])
    frozen = sample(stack, 100, n_steps=100, generator=tuned.generator(1)) / 255  # the negative control
    assert frozen.std(0).mean() < 0.2 * spread
    near, far = (frechet_distance(x.flatten(1), images.flatten(1)) for images in (drawn["dbn"], frozen))
    assert near < 0.5 * far


def test_walks_and_units_of_a_tuned_network(tuned: Faces, generator: torch.Generator) -> None:
    """A walk begins and ends at its samples; a unit of the first level changes a patch."""
    dbn = tuned.network()
    codes = torch.randn(4, 7, generator=generator)
    rows = walks(dbn, codes, 5)
    assert list(rows) == ["walk 1", "walk 2"]
    torch.testing.assert_close(rows["walk 2"][[0, -1]], images_of(dbn, codes[2:]), rtol=0, atol=1e-5)
    shown = pictures(tuned)
    assert list(shown["units"]) == ["level 1", "level 2", "level 3"] and len(shown["walks"]) == 4
    changed = (shown["units"]["level 1"] - 0.5).abs().amax((0, 1)) > 1e-6
    assert changed.any() and not changed[:2].any() and changed.sum() <= 16  # 4 x 4 pixels around the middle


@pytest.mark.parametrize("update", [31, 222])  # while the layers are tuned, and in the top machine
def test_a_tuned_run_resumes_exactly(tuned: Faces, data: Data, tmp_path: Path, update: int) -> None:
    run = faces_of(data, tmp_path / "run", tuned.recipe)
    assert not run.train(callbacks=(StopAt(update),))
    assert run.train()
    assert (run.folder / MODEL).read_bytes() == (tuned.folder / MODEL).read_bytes()


def test_the_curve_falls(finished: Faces) -> None:
    records = finished.score(network=PIXELS)
    curve = records["curve"]
    assert [point["epoch"] for point in curve] == [5, 10, 20, 30, 40]
    assert curve[-1]["frechet"] < curve[0]["frechet"]
    times = [point["cpu_seconds"] for point in curve]
    assert times[0] > 0 and times == sorted(times)
    (lines,) = [p for panel in finished.panels() for p in panel.pictures if isinstance(p, Lines)]
    assert list(lines.series["samples"]) == [point["frechet"] for point in curve]


def test_the_table_says_what_was_measured(finished: Faces) -> None:
    records = finished.score(network=PIXELS)  # read back: nothing is computed again
    table = table_of_faces(finished, records)
    for part in (
        "pixels (192 features)",
        "400 samples",
        "1,000 real images",
        "two halves",
        "as many real images as samples",
        "±",
        "copies",
        "Seed 0",
    ):
        assert part in table
    assert records["noise"]["frechet"]["value"] > records["dbn"]["frechet"]["value"]
    assert records["dbn"]["frechet"]["floor"] < records["dbn"]["frechet"]["value"]
    assert math.isfinite(records["copies"]["ratio"])


def pictures(run: Faces) -> dict[str, Any]:
    shown = [picture for panel in face_panels(run, n=6) for picture in panel.pictures]
    return {picture.name: picture.rows for picture in shown if isinstance(picture, ImageRows)}


def test_the_report_is_that_of_a_run(finished: Faces, data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    finished.data_dir = "nowhere"  # no other data sets there
    shown = pictures(finished)
    assert list(shown) == ["reconstructions", "neighbors", "colored"]
    assert list(shown["reconstructions"]) == ["data", "from level 1", "from level 2"]
    monkeypatch.setattr(pictures_module, "load", lambda name, data_dir: data)
    found = open_experiment(finished.folder)
    assert isinstance(found, Faces) and found.recipe == RECIPE and found.listed().score.startswith("Fréchet distance")
    found.data = data
    write_panels(found.folder, found.sentences(), found.settings(), found.metrics(), found.panels())
    names = {path.stem for path in (found.folder / "figures").iterdir()}
    wanted = {"colored", "neighbors", "not_faces", "photographs", "reconstructions", "samples", "curve-pixels"}
    assert wanted <= names
    text = (found.folder / "report.html").read_text()
    assert "Samples while it learns" not in text and "Distance over time" in text and "precision" in text


def test_a_budget_sets_the_epochs() -> None:
    assert RECIPE.within(0.2).epochs == 80 and RECIPE.within(0.2).layer_epochs == 0
    assert dataclasses.replace(RECIPE, layers="conv 8 4x4/2", layer_epochs=20).within(0.05).layer_epochs == 10
    with pytest.raises(ValueError, match="budget"):
        RECIPE.within(0)
