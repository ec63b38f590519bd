"""How good samples of images are: Fréchet distance, precision and recall on the features of one network."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.evaluation.images.feature_network import FeatureNetwork, Progress
from harmonium.evaluation.images.frechet import FrechetScore, frechet_score
from harmonium.evaluation.images.precision_recall import PrecisionRecall, precision_recall


@dataclass(frozen=True)
class GenerationScore:
    """The Fréchet distance with its floor, and precision and recall; printed with the network and the numbers."""

    frechet: FrechetScore
    shares: PrecisionRecall

    def __str__(self) -> str:
        return f"{self.frechet}\n{self.shares}"


def generation_score(
    real: Tensor,
    samples: Tensor,
    network: FeatureNetwork,
    *,
    n_neighbors: int = 3,
    on_progress: Progress | None = None,
    generator: torch.Generator | None = None,
) -> GenerationScore:
    """Score samples against real images, both `(n, channels, height, width)`: bytes, or values in [0, 1].

    The distance uses all images; precision and recall use equal numbers of both, the first ones: their order should be
    random. `network` is any `FeatureNetwork`; `choose_network` has one for each kind of images.

    >>> network = FeatureNetwork("pixels", torch.nn.Flatten(), 4)
    >>> x = torch.arange(160.0).sin().square().view(40, 1, 2, 2)
    >>> generation_score(x, x, network).frechet.value < 1e-9
    True
    """
    total = len(real) + len(samples)

    def report(before: int) -> Progress | None:
        return None if on_progress is None else lambda done, _: on_progress(before + done, total)

    real_features = network.features(real, on_progress=report(0))
    features = network.features(samples, on_progress=report(len(real)))
    n = min(len(real), len(samples))
    shares = precision_recall(real_features[:n], features[:n], n_neighbors, network=network.name)
    return GenerationScore(frechet_score(real_features, features, network, generator=generator), shares)
