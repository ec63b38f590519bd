"""Which feature network suits which images."""

from __future__ import annotations

import os

import torch

from harmonium.data import Data
from harmonium.evaluation.images.feature_network import FeatureNetwork, Progress, efficientnet_lite0
from harmonium.evaluation.images.gray_classifier import cached_gray_classifier, train_gray_classifier
from harmonium.evaluation.images.inception import inception as inception_of

_N_SEEN = 150_000  # images that the classifier learns from, repeats counted: 3 epochs of MNIST


def choose_network(
    data: Data,
    *,
    inception: str | os.PathLike[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> FeatureNetwork:
    """Return the network whose features tell how far samples are from these images.

    Inception-v3 if its weight file `inception` is given: the score is then FID. Else, for gray images with labels and a
    test split, a small classifier trained on them here (seconds to a minute) and kept in `folder` if that is given:
    only scores of the same classifier, which its name tells, can be compared. For all other images EfficientNet-Lite0.
    """
    if len(data.shape) != 3 or data.shape[0] not in (1, 3):
        raise ValueError(
            f"{data.name} must hold gray or color images (channels, height, width) to choose a feature network. "
            f"Got samples of shape {tuple(data.shape)}."
        )
    if inception is not None:
        return inception_of(inception)
    labeled = not any(y is None for y in (data.train_labels, data.test, data.test_labels))
    if data.shape[0] == 3 or not labeled or min(data.shape[1:]) < 4:
        return efficientnet_lite0()
    epochs = -(-_N_SEEN // len(data.train))
    if folder is not None:
        return cached_gray_classifier(data, folder, seed=seed, epochs=epochs, on_progress=on_progress).network()
    generator = torch.Generator().manual_seed(seed)
    return train_gray_classifier(data, epochs=epochs, generator=generator, on_progress=on_progress).network()
