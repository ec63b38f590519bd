"""Nearest neighbors, and whether samples are copies of the training data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.draws import draw_integers
from harmonium.evaluation.images.feature_network import Progress
from harmonium.evaluation.images.frechet import with_error

_ROWS = 512  # points whose distances to all others are held at once


@dataclass(frozen=True, eq=False)
class Neighbors:
    """The nearest points of a reference: Euclidean `distance` and `index`, both `(n, n_neighbors)`, nearest first."""

    distance: Tensor
    index: Tensor


@dataclass(frozen=True)
class CopyCheck:
    """How near samples are to the training data, against how near unseen real data are.

    `sample_distance` and `test_distance` are the median distances to the nearest training point, `ratio` the first
    over the second with its bootstrap standard error: near 1 or above when nothing is copied, near 0 for copies.
    `n_copies` counts the samples that lie nearer to a training point than half of what the nearest test point does.

    >>> print(CopyCheck(8.1, 8.0, 1.0125, 0.01, 0, 500, 500, 9000))
    nearest training neighbor: 8.1 from samples, 8 from test data, ratio 1.012 ± 0.010; 0 of 500 samples are copies
    """

    sample_distance: float
    test_distance: float
    ratio: float
    error: float
    n_copies: int
    n_samples: int
    n_test: int
    n_train: int

    def __str__(self) -> str:
        return (
            f"nearest training neighbor: {self.sample_distance:.3g} from samples, {self.test_distance:.3g} from test "
            f"data, ratio {with_error(self.ratio, self.error)}; "
            f"{self.n_copies} of {self.n_samples:,} samples are copies"
        )


def nearest_neighbors(
    x: Tensor, reference: Tensor, n_neighbors: int = 1, *, on_progress: Progress | None = None
) -> Neighbors:
    """Return the `n_neighbors` nearest points of `reference` for each point of `x`, `(n, …)` and `(m, …)`.

    Any features will do: pixels as they are, or those of a `FeatureNetwork`. Distances are computed in float64, a few
    hundred rows at a time.

    >>> found = nearest_neighbors(torch.tensor([[0.0, 3.0]]), torch.tensor([[9.0, 9.0], [4.0, 0.0]]))
    >>> found.distance.item(), found.index.item()
    (5.0, 1)
    """
    x, reference = as_points(x, "x"), as_points(reference, "reference")
    check_same_shape(x, reference)
    if not 1 <= n_neighbors <= len(reference):
        raise ValueError(f"`n_neighbors` must be in 1..{len(reference)}, the points of `reference`. Got {n_neighbors}.")
    distances, indices, done = [], [], 0
    for rows, squared in squared_distances(x, reference):
        index = squared.topk(n_neighbors, largest=False).indices
        exact = (rows[:, None] - reference[index]).square().sum(-1).sqrt()  # the product's rounding is taken out
        order = exact.argsort(dim=1, stable=True)
        distances.append(exact.gather(1, order))
        indices.append(index.gather(1, order))
        done += len(rows)
        if on_progress is not None:
            on_progress(done, len(x))
    return Neighbors(torch.cat(distances), torch.cat(indices))


def copy_check(
    samples: Tensor, train: Tensor, test: Tensor, *, n_resamples: int = 200, generator: torch.Generator | None = None
) -> CopyCheck:
    """Compare the distance from samples to their nearest training point with that from unseen test data to theirs.

    A model that memorizes puts its samples nearer to the training data than new data are (Theis, van den Oord and
    Bethge 2016, section 3.3). Pixels or features, as in `nearest_neighbors`.
    """
    from_samples = nearest_neighbors(samples, train).distance[:, 0]
    from_test = nearest_neighbors(test, train).distance[:, 0]
    middle, usual = from_samples.median().item(), from_test.median().item()
    if usual == 0:
        raise ValueError("`test` must differ from `train`. Got a median distance of 0: the test data are among them.")
    ratios = []
    for _ in range(n_resamples):
        first, second = _resampled(from_samples, generator), _resampled(from_test, generator)
        ratios.append(first.median() / second.median().clamp_min(torch.finfo(torch.float64).tiny))
    error = torch.stack(ratios).std().item() if n_resamples > 1 else math.nan
    n_copies = int((from_samples < from_test.min() / 2).sum())
    return CopyCheck(middle, usual, middle / usual, error, n_copies, len(samples), len(test), len(train))


def squared_distances(x: Tensor, reference: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield rows of `x` with their squared distances to all points of `reference`, `|a|² + |b|² - 2ab` in float64.

    Both are centered first, so that the rounding stays near 1e-16 of the spread of the points.
    """
    center = reference.mean(0)
    shifted = reference - center
    norms = shifted.square().sum(1)
    for rows in x.split(_ROWS):
        moved = rows - center
        squared = torch.addmm(norms, moved, shifted.mT, alpha=-2).add_(moved.square().sum(1, keepdim=True))
        yield rows, squared.clamp_min_(0)


def as_points(x: Tensor, name: str) -> Tensor:
    """Return points as float64 `(n, d)`, checked."""
    if x.ndim < 2 or len(x) < 1:
        raise ValueError(f"`{name}` must hold points, as (n, …). Got {tuple(x.shape)}.")
    points = x.detach().to(torch.float64).flatten(1)
    if not bool(points.isfinite().all()):
        raise ValueError(f"`{name}` must be finite. Got NaN or infinite values. Drop those points, and say so.")
    return points


def check_same_shape(x: Tensor, reference: Tensor) -> None:
    """Raise unless both sets hold points of as many values."""
    if x.shape[1] != reference.shape[1]:
        raise ValueError(
            f"Both sets must hold points of as many values. Got {x.shape[1]} and {reference.shape[1]}. "
            "Use images of one size, or features of one network."
        )


def _resampled(values: Tensor, generator: torch.Generator | None) -> Tensor:
    return values[draw_integers(len(values), (len(values),), generator=generator).to(values.device)]
