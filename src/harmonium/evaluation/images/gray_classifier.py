"""A small classifier of gray images, trained here, whose features serve the Fréchet distance on MNIST-like images."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, max_pool2d, relu

from harmonium.data import Data, scale
from harmonium.draws import draw_normal, draw_permutation
from harmonium.evaluation.images.feature_network import FeatureNetwork, Progress

_FORMAT = "harmonium gray classifier 1"


class GrayClassifier(nn.Module):
    """Two convolutions with pooling and two dense layers, `(n, 1, height, width)` in [0, 1] to class logits.

    >>> GrayClassifier((28, 28), 10).features(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 128])
    """

    n_features = 128

    def __init__(self, size: tuple[int, int], n_classes: int, *, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.size, self.n_classes = size, n_classes
        height, width = (side // 4 for side in size)
        self.conv1, self.conv2 = nn.Conv2d(1, 24, 5, padding=2), nn.Conv2d(24, 48, 3, padding=1)
        self.dense1 = nn.Linear(48 * height * width, self.n_features)
        self.dense2 = nn.Linear(self.n_features, n_classes)
        with torch.no_grad():
            for layer in (self.conv1, self.conv2, self.dense1, self.dense2):
                inputs = layer.weight[0].numel()
                layer.weight.copy_(draw_normal(layer.weight, generator=generator) * math.sqrt(2 / inputs))
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def features(self, x: Tensor) -> Tensor:
        """Return the activities of the layer before the logits, `(n, 128)`."""
        y = relu(max_pool2d(self.conv1(x.contiguous(memory_format=torch.channels_last)), 2))
        y = relu(max_pool2d(self.conv2(y), 2))
        return relu(self.dense1(y.flatten(1)))

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of the classes."""
        return self.dense2(self.features(x))


@dataclass(frozen=True, eq=False)
class TrainedClassifier:
    """A classifier with what is known of it: its data, the accuracy on their test split, and how many were tested."""

    classifier: GrayClassifier
    data: str
    accuracy: float
    n_test: int

    @property
    def name(self) -> str:
        """The name of the feature network: the data and the start of the SHA-256 of the parameters."""
        digest = hashlib.sha256()
        for name, value in sorted(self.classifier.state_dict().items()):
            digest.update(name.encode() + value.contiguous().numpy().tobytes())
        return f"{self.data}-classifier-{digest.hexdigest()[:8]}"

    def network(self) -> FeatureNetwork:
        """Return the feature network."""
        return FeatureNetwork(self.name, _Features(self.classifier), self.classifier.n_features)

    def __str__(self) -> str:
        error = math.sqrt(self.accuracy * (1 - self.accuracy) / self.n_test)
        return f"{self.name}: accuracy {100 * self.accuracy:.2f} ± {100 * error:.2f} % of {self.n_test:,} test images"


def train_gray_classifier(
    data: Data,
    *,
    epochs: int = 3,
    batch_size: int = 128,
    learning_rate: float = 2e-3,
    generator: torch.Generator | None = None,
    on_progress: Progress | None = None,
) -> TrainedClassifier:
    """Train a classifier on gray images with labels by Adam, the rate falling linearly to 0, and test it."""
    x, labels, test, test_labels = data.train, data.train_labels, data.test, data.test_labels
    if len(data.shape) != 3 or data.shape[0] != 1 or min(data.shape[1:]) < 4:
        raise ValueError(f"{data.name} must hold gray images (1, height, width). Got samples of shape {data.shape}.")
    if labels is None or test is None or test_labels is None:
        raise ValueError(f"{data.name} must have labels and a test split to train a classifier. It has not.")
    n_classes = int(labels.max()) + 1
    classifier = GrayClassifier((data.shape[1], data.shape[2]), n_classes, generator=generator)
    optimizer = torch.optim.Adam(classifier.parameters(), learning_rate)
    n_updates, done = epochs * -(-len(x) // batch_size), 0
    for _ in range(epochs):
        for chosen in draw_permutation(len(x), generator=generator).split(batch_size):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * (1 - done / n_updates)
            optimizer.zero_grad()
            cross_entropy(classifier(scale(x[chosen], data.levels)), labels[chosen]).backward()
            optimizer.step()
            done += 1
            if on_progress is not None:
                on_progress(done, n_updates)
    classifier.eval().requires_grad_(False)
    right = sum(
        int((classifier(scale(rows, data.levels)).argmax(1) == target).sum())
        for rows, target in zip(test.split(512), test_labels.split(512), strict=True)
    )
    return TrainedClassifier(classifier, data.name, right / len(test), len(test))


def cached_gray_classifier(
    data: Data,
    folder: str | os.PathLike[str],
    *,
    seed: int = 0,
    epochs: int = 3,
    on_progress: Progress | None = None,
) -> TrainedClassifier:
    """Return the classifier of this data set and seed kept in `folder`, trained and written there the first time."""
    path = Path(folder) / f"{data.name}-classifier-seed{seed}-epochs{epochs}.safetensors"
    if path.is_file():
        return read_gray_classifier(path)
    generator = torch.Generator().manual_seed(seed)
    trained = train_gray_classifier(data, epochs=epochs, generator=generator, on_progress=on_progress)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".tmp-{os.getpid()}-{path.name}")
    temporary.write_bytes(_as_bytes(trained))
    temporary.replace(path)
    return trained


def read_gray_classifier(path: str | os.PathLike[str]) -> TrainedClassifier:
    """Read a classifier that `cached_gray_classifier` wrote."""
    with safe_open(path, framework="pt") as file:
        about = json.loads((file.metadata() or {}).get("about", "{}"))
        if about.get("format") != _FORMAT:
            raise ValueError(f"{path} does not hold a classifier of gray images. Remove it to train it again.")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a mapping)
    classifier = GrayClassifier((about["size"][0], about["size"][1]), about["n_classes"])
    classifier.load_state_dict(tensors)
    return TrainedClassifier(classifier.eval().requires_grad_(False), about["data"], about["accuracy"], about["n_test"])


def _as_bytes(trained: TrainedClassifier) -> bytes:
    classifier = trained.classifier
    about = {
        "format": _FORMAT,
        "data": trained.data,
        "accuracy": trained.accuracy,
        "n_test": trained.n_test,
        "size": list(classifier.size),
        "n_classes": classifier.n_classes,
    }
    tensors = {name: value.contiguous() for name, value in classifier.state_dict().items()}
    return tensors_to_bytes(tensors, metadata={"about": json.dumps(about)})


class _Features(nn.Module):
    """The features of a classifier of gray images."""

    def __init__(self, classifier: GrayClassifier) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier.features(x)
