"""The experiment on faces, small: closed forms of the lower machine, learning, exact resume, and the table."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from harmonium.data import Data
from harmonium.evaluation.images.feature_network import FeatureNetwork
from harmonium.evaluation.images.frechet import frechet_distance
from harmonium.experiments.faces import pictures as pictures_module
from harmonium.experiments.faces.folder import MODEL, FaceRun
from harmonium.experiments.faces.network import principal_machine, reconstruct_faces, sample_faces, top_machine
from harmonium.experiments.faces.pictures import color_faces, face_pictures, gray_of
from harmonium.experiments.faces.recipe import FaceRecipe
from harmonium.experiments.faces.scores import draw_all, score_faces, table_of_faces
from harmonium.experiments.faces.training import train_faces
from harmonium.laws.principal import PCAGaussian
from harmonium.learning import Callback, Training
from harmonium.models import DBN
from harmonium.plots.faces import frechet_curve, write_face_pictures

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


def quiet(text: str) -> None:
    """Say nothing."""


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
def finished(data: Data, tmp_path_factory: pytest.TempPathFactory) -> FaceRun:
    run = FaceRun(tmp_path_factory.mktemp("faces"), 8, 0, RECIPE, n_samples=400, n_steps=100, data="blobs")
    run.open()
    dbn = train_faces(run, data, say=quiet)
    assert dbn is not None
    score_faces(run, dbn, data, draw_all(run, dbn, data), network=PIXELS, say=quiet)
    return run


def test_samples_are_nearer_to_data_than_noise(finished: FaceRun, data: Data) -> None:
    dbn = train_faces(finished, data, say=quiet)
    assert dbn is not None
    real = data.train.float().flatten(1) / 255
    drawn = draw_all(finished, dbn, data)
    distance = {name: frechet_distance(real, x.flatten(1)) for name, x in drawn.items()}
    assert distance["dbn"] < 0.5 * distance["noise"]
    untrained = DBN([*list(dbn)[:-1], top_machine(RECIPE, generator=finished.generator(7))])
    before = sample_faces(untrained, 400, n_steps=100, generator=finished.generator(1))
    assert distance["dbn"] < frechet_distance(real, before.flatten(1))  # negative control: learning did it


class StopAt(Callback):
    """Stop at an update."""

    def __init__(self, update: int) -> None:
        self.at = update

    def on_update(self, training: Training) -> None:
        if training.update == self.at:
            training.stop = True


def test_a_stopped_run_ends_with_the_same_bits(finished: FaceRun, data: Data, tmp_path: Path) -> None:
    run = dataclasses.replace(finished, folder=tmp_path / "stopped")
    run.open()
    assert train_faces(run, data, callbacks=(StopAt(133),), say=quiet) is None
    assert not (run.folder / MODEL).exists()
    assert train_faces(run, data, say=quiet) is not None
    assert (run.folder / MODEL).read_bytes() == (finished.folder / MODEL).read_bytes()
    other = dataclasses.replace(run, seed=1)
    with pytest.raises(ValueError, match="other settings"):
        other.open()


@pytest.fixture(scope="module")
def convolutional(finished: FaceRun, data: Data, tmp_path_factory: pytest.TempPathFactory) -> FaceRun:
    recipe = dataclasses.replace(RECIPE, layers="conv 8 4x4/2", layer_epochs=10, epochs=20)
    run = dataclasses.replace(finished, folder=tmp_path_factory.mktemp("conv"), recipe=recipe)
    run.open()
    assert train_faces(run, data, say=quiet) is not None
    return run


def test_a_convolutional_network_learns(convolutional: FaceRun, data: Data) -> None:
    """Its first level knows the images, its codes most of what varies, and its samples are nearer than noise."""
    dbn = train_faces(convolutional, data, say=quiet)
    assert dbn is not None and data.test is not None
    assert dbn.shapes == [(3, 8, 8), (8, 4, 4), (7,), (32,)]
    x, test = data.train.float() / 255, data.test.float() / 255
    spread = (test - x.mean(0)).square().mean()
    shares = [((reconstruct_faces(dbn, test, depth) - test).square().mean() / spread).item() for depth in (1, 2)]
    assert shares[0] < 0.1 and shares[1] < 0.2
    drawn = draw_all(convolutional, dbn, data)
    near, far = (frechet_distance(x.flatten(1), drawn[name].flatten(1)) for name in ("dbn", "noise"))
    assert near < 0.5 * far
    shown = face_pictures(convolutional, dbn, data, drawn, n=6, data_dir=str(convolutional.folder))
    assert list(shown.reconstructions) == ["data", "from level 1", "from level 2", "from level 3"]
    gray = gray_of(shown.colored["original"])
    assert (gray_of(shown.colored["colored"]) - gray).abs().mean() < 0.01


@pytest.mark.parametrize("update", [77, 333])  # in the convolutional machines, and in the top one
def test_a_convolutional_run_resumes_exactly(convolutional: FaceRun, data: Data, tmp_path: Path, update: int) -> None:
    run = dataclasses.replace(convolutional, folder=tmp_path)
    run.open()
    assert train_faces(run, data, callbacks=(StopAt(update),), say=quiet) is None
    assert train_faces(run, data, say=quiet) is not None
    assert (run.folder / MODEL).read_bytes() == (convolutional.folder / MODEL).read_bytes()


def test_the_curve_falls(finished: FaceRun, data: Data) -> None:
    dbn = train_faces(finished, data, say=quiet)
    assert dbn is not None
    records = score_faces(finished, dbn, data, {}, network=PIXELS, say=quiet)
    curve = records["curve"]
    assert [point["epoch"] for point in curve] == [5, 10, 20, 30, 40]
    assert curve[-1]["frechet"] < curve[0]["frechet"]
    assert all(point["cpu_seconds"] > 0 for point in curve)
    (axes,) = frechet_curve(records).axes
    assert axes.lines[0].get_ydata().tolist() == [point["frechet"] for point in curve]  # type: ignore[union-attr]


def test_the_table_says_what_was_measured(finished: FaceRun, data: Data) -> None:
    dbn = train_faces(finished, data, say=quiet)
    assert dbn is not None
    records = score_faces(finished, dbn, data, {}, network=PIXELS, say=quiet)  # read back: nothing is computed again
    table = table_of_faces(finished, records)
    for part in ("pixels (192 features)", "400 samples", "1,000 real images", "two halves", "±", "copies", "Seed 0"):
        assert part in table
    assert records["noise"]["frechet"]["value"] > records["dbn"]["frechet"]["value"]
    assert records["dbn"]["frechet"]["floor"] < records["dbn"]["frechet"]["value"]
    assert math.isfinite(records["copies"]["ratio"])


def test_pictures(finished: FaceRun, data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dbn = train_faces(finished, data, say=quiet)
    assert dbn is not None
    drawn = draw_all(finished, dbn, data)
    shown = face_pictures(finished, dbn, data, drawn, n=6, data_dir=str(tmp_path))  # no other data sets there
    assert shown.not_faces == {} and shown.photographs == {}
    assert list(shown.reconstructions) == ["data", "from level 1", "from level 2"]
    monkeypatch.setattr(pictures_module, "load", lambda name, data_dir: data)
    shown = face_pictures(finished, dbn, data, drawn, n=6)
    paths = write_face_pictures(shown.samples, shown.groups(), tmp_path / "figures")
    assert sorted(path.stem for path in paths) == [
        "colored",
        "neighbors",
        "not_faces",
        "photographs",
        "reconstructions",
        "samples",
    ]
    assert all(path.stat().st_size > 0 for path in paths)


def test_a_budget_sets_the_epochs() -> None:
    assert RECIPE.within(0.2).epochs == 80 and RECIPE.within(0.2).layer_epochs == 0
    assert dataclasses.replace(RECIPE, layers="conv 8 4x4/2", layer_epochs=20).within(0.05).layer_epochs == 10
    with pytest.raises(ValueError, match="budget"):
        RECIPE.within(0)
