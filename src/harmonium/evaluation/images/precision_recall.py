"""Are samples like the data, and do they cover it: precision and recall of two sets of features."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.evaluation.images.feature_network import Progress
from harmonium.evaluation.images.neighbors import as_points, check_same_shape, squared_distances

_ROUNDING = 1e-12  # of the largest squared distance: points that differ by less are one


@dataclass(frozen=True)
class PrecisionRecall:
    """Precision, the share of samples that lie among the data; recall, the share of the data among the samples.

    The errors are standard deviations of the shares given the counts, under a uniform prior: not 0 where none or all of
    n points are inside. Both shares depend on the number of points: compare equal numbers.

    >>> print(PrecisionRecall(0.5, 0.25, 0.01, 0.02, 3, 1000, 500, "EfficientNet-Lite0"))
    precision 0.500 ± 0.010, recall 0.250 ± 0.020 (EfficientNet-Lite0, 3 neighbors, 500 samples, 1,000 real images)
    """

    precision: float
    recall: float
    precision_error: float
    recall_error: float
    n_neighbors: int
    n_real: int
    n_samples: int
    network: str = "features"

    def __str__(self) -> str:
        return (
            f"precision {self.precision:.3f} ± {self.precision_error:.3f}, "
            f"recall {self.recall:.3f} ± {self.recall_error:.3f} "
            f"({self.network}, {self.n_neighbors} neighbors, {self.n_samples:,} samples, {self.n_real:,} real images)"
        )


def precision_recall(
    real_features: Tensor,
    sample_features: Tensor,
    n_neighbors: int = 3,
    *,
    network: str = "features",
    on_progress: Progress | None = None,
) -> PrecisionRecall:
    """Improved precision and recall (eqs. 1 and 2 of Kynkäänniemi et al. 2019), `(n, d)` and `(m, d)` features.

    The manifold of a set is the union of balls around its points, each as large as the distance to its k-th nearest
    neighbor in the set (itself left out). Precision is the share of samples inside the manifold of the real images,
    recall the share of real images inside that of the samples. A few hundred rows of distances are held at a time.

    >>> x = torch.arange(10.0)[:, None]
    >>> found = precision_recall(x, torch.cat([x[:5], x[:5] + 100]))
    >>> found.precision
    0.5
    """
    real, samples = as_points(real_features, "real_features"), as_points(sample_features, "sample_features")
    check_same_shape(real, samples)
    if n_neighbors < 1 or n_neighbors >= min(len(real), len(samples)):
        raise ValueError(
            f"`n_neighbors` must be in 1..{min(len(real), len(samples)) - 1}, below the number of points. "
            f"Got {n_neighbors}."
        )
    total = 2 * len(real) + 2 * len(samples)
    report = _Counter(on_progress, total)
    precision = _share_inside(samples, real, _squared_radii(real, n_neighbors, report), report)
    recall = _share_inside(real, samples, _squared_radii(samples, n_neighbors, report), report)
    first, second = (_error(p, n) for p, n in ((precision, len(samples)), (recall, len(real))))
    return PrecisionRecall(precision, recall, first, second, n_neighbors, len(real), len(samples), network)


def _error(share: float, n: int) -> float:
    """Return the standard deviation of Beta(k + 1, n - k + 1), where k of n points were inside."""
    p = (share * n + 1) / (n + 2)
    return math.sqrt(p * (1 - p) / (n + 3))


class _Counter:
    """Adds up the rows that are done and tells it."""

    def __init__(self, on_progress: Progress | None, total: int) -> None:
        self.on_progress, self.total, self.done = on_progress, total, 0

    def __call__(self, n: int) -> None:
        self.done += n
        if self.on_progress is not None:
            self.on_progress(self.done, self.total)


def _squared_radii(points: Tensor, k: int, report: _Counter) -> Tensor:
    """Return the squared distance of each point to its k-th nearest neighbor among the others."""
    radii, start = [], 0
    for rows, squared in squared_distances(points, points):
        own = torch.arange(len(rows))
        squared[own, start + own] = torch.inf
        radii.append(squared.kthvalue(k, dim=1).values)
        start += len(rows)
        report(len(rows))
    return torch.cat(radii)


def _share_inside(points: Tensor, centers: Tensor, squared_radii: Tensor, report: _Counter) -> float:
    """Return the share of points that lie in at least one ball."""
    inside = 0
    for rows, squared in squared_distances(points, centers):
        slack = _ROUNDING * squared.max()
        inside += int((squared <= squared_radii + slack).any(1).sum())
        report(len(rows))
    return inside / len(points)
