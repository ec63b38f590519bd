"""The classifier trained here: it learns, it is kept, and its features tell digits from noise."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch

from harmonium.data import Data, load
from harmonium.evaluation.images.frechet import frechet_distance
from harmonium.evaluation.images.gray_classifier import (
    cached_gray_classifier,
    read_gray_classifier,
    train_gray_classifier,
)


@pytest.fixture(scope="module")
def digits() -> Data:
    return load("digits")


def test_it_learns_is_kept_and_repeats(digits: Data, tmp_path: Path) -> None:
    first = cached_gray_classifier(digits, tmp_path, epochs=15)
    assert first.accuracy > 0.93
    assert first.name.startswith("digits-classifier-") and len(first.name) == len("digits-classifier-") + 8
    (path,) = tmp_path.glob("*.safetensors")
    again = cached_gray_classifier(digits, tmp_path, epochs=15)
    read = read_gray_classifier(path)
    assert again.name == read.name == first.name
    assert read.accuracy == first.accuracy and str(read) == str(first)
    x = digits.train[:64].float() / 16
    assert torch.equal(first.network().features(x), read.network().features(x))
    anew = train_gray_classifier(digits, epochs=15, generator=torch.Generator().manual_seed(0))
    assert anew.name == first.name
    other = train_gray_classifier(digits, epochs=1, generator=torch.Generator().manual_seed(1))
    assert other.name != first.name
    assert other.accuracy < first.accuracy


def test_its_features_tell_digits_from_noise(digits: Data, generator: torch.Generator) -> None:
    network = train_gray_classifier(digits, epochs=8, generator=generator).network()
    x = digits.train.float() / 16
    real, half = network.features(x[:600]), network.features(x[600:1200])
    noise = network.features(torch.rand(600, 1, 8, 8, generator=generator))
    assert 5 * frechet_distance(real, half) < frechet_distance(real, noise)


def test_errors_say_what_to_do(digits: Data, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="labels and a test split"):
        train_gray_classifier(dataclasses.replace(digits, test=None, test_labels=None))
    with pytest.raises(ValueError, match="gray images"):
        train_gray_classifier(load("moons", n_samples=50))
    path = tmp_path / "other.safetensors"
    from safetensors.torch import save_file

    save_file({"weight": torch.zeros(2)}, path)
    with pytest.raises(ValueError, match="does not hold a classifier"):
        read_gray_classifier(path)
