"""A network that starts at principal components."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch
from torch import Tensor

from harmonium.laws.principal import PCAGaussian
from harmonium.learning.starts import principal_layers
from harmonium.models import DBN


def images(generator: torch.Generator) -> Tensor:
    """Images in the middle of 0..255 that vary along eight directions, two of them little."""
    basis = torch.linalg.qr(torch.randn(64, 64, dtype=torch.float64, generator=generator)).Q[:8]
    sizes = torch.tensor([60.0, 50.0, 40.0, 30.0, 25.0, 20.0, 8.0, 5.0], dtype=torch.float64)
    scores = torch.rand(400, 8, dtype=torch.float64, generator=generator) - 0.5
    return 120 + ((scores * sizes) @ basis).view(-1, 1, 8, 8)


@pytest.mark.parametrize("spec", ["dense 6", "conv 8 4x4/2, dense 6", "conv 8 4x4/2, conv 40 4x4/2, dense 9, dense 6"])
def test_a_linear_network_gives_back_its_principal_components(spec: str, generator: torch.Generator) -> None:
    """Where the units' curve is a straight line, what comes back is the projection: the code is six components."""
    x = images(generator)
    dbn = DBN.from_spec(spec, shape=(1, 8, 8), levels=255, activation="relu", generator=generator).double().untied()
    x = x.view(-1, *dbn.visible.shape)
    before = dbn.reconstruct(x)
    principal_layers(dbn, x, spread=0.05, generator=generator)
    projected = PCAGaussian.fit(x, 6).project(x)
    spread = x.std(0).mean()
    assert (dbn.reconstruct(x) - projected).abs().max() < 1e-6 * spread
    assert (before - projected).abs().max() > spread  # the negative control
    field = dbn.up(x) / 255 - 0.5
    assert field.square().mean().sqrt().item() == pytest.approx(0.05, rel=0.01) and field.std(0).max() < 0.15


def test_dense_layers_see_all_images_and_convolutions_some(
    monkeypatch: pytest.MonkeyPatch, generator: torch.Generator
) -> None:
    """Two directions are in the last images alone: the code has all eight only if a dense layer saw these."""
    x = images(generator)
    apart = torch.linalg.qr(x.flatten(1).T - 120).Q[:, :2].T.view(2, 1, 8, 8)
    first = x[:200] - sum((x[:200] * one).sum((1, 2, 3), keepdim=True) * one for one in apart)
    x = torch.cat([first, x[200:]])
    monkeypatch.setattr(import_module("harmonium.learning.starts.principal_layers"), "_N_IMAGES", 200)
    for known, share in ((x, 0.0), (x[:200], 0.1)):
        dbn = DBN.from_spec("conv 40 4x4/2, dense 9", shape=(1, 8, 8), levels=255, activation="relu").double().untied()
        principal_layers(dbn, known, spread=0.05, generator=torch.Generator().manual_seed(1))
        left = (dbn.reconstruct(x) - x).square().sum() / (x - x.mean(0)).square().sum()
        assert left > share if share else left < 1e-9


def test_curved_units_come_near(generator: torch.Generator) -> None:
    x = images(generator)
    dbn = DBN.from_spec("conv 8 4x4/2, dense 6", shape=(1, 8, 8), levels=255, generator=generator).double().untied()
    principal_layers(dbn, x, spread=0.2, generator=generator)
    projected = PCAGaussian.fit(x, 6).project(x)
    assert (dbn.reconstruct(x) - projected).square().mean() < 0.02 * (x - x.mean(0)).square().mean()


@pytest.mark.parametrize(
    ("dbn", "error", "text"),
    [
        (DBN.from_spec("dense 3", shape=(6,), levels=255), ValueError, "needs recognition weights"),
        (DBN.from_spec("dense 3", shape=(6,)).untied(), TypeError, "is for multinary units"),
        (DBN.from_spec("conv 3 3x3 pad 0", shape=(1, 6, 6), levels=9).untied(), ValueError, "must divide the image"),
    ],
)
def test_what_cannot_start_so_is_said(dbn: DBN, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        principal_layers(dbn, torch.zeros(4, *dbn.visible.shape))
