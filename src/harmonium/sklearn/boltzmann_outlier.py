"""Rows that are odd beside those that a model draws."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from harmonium.evaluation.crowd import Crowd
from harmonium.sklearn.base import as_rows, in_blocks
from harmonium.sklearn.table_estimator import TableEstimator


class BoltzmannOutlier(OutlierMixin, TableEstimator):
    """Outliers are rows that are odd beside rows of the model (`harmonium.evaluation.crowd.Crowd`).

    `decision_function` is negative for outliers. `contamination` is the share of the training rows that count as such;
    the other parameters are those of `BoltzmannDensity`, which returns nats. A row with NaN is judged by the values
    that it has.

    >>> import numpy as np
    >>> X = np.r_[np.linspace(0, 1, 20), 9.0][:, None]
    >>> int(BoltzmannOutlier(1, contamination=0.05, shrinkage=0.0, random_state=0).fit_predict(X)[-1])
    -1
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        contamination: float = 0.1,
        shrinkage: float | None = None,
        n_init: int = 4,
        max_iter: int = 200,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_components, shrinkage=shrinkage, n_init=n_init, max_iter=max_iter, random_state=random_state)
        self.contamination = contamination

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the density of the rows of X, and from which score on they count as outliers; `y` is ignored."""
        if not 0 < self.contamination <= 0.5:
            raise ValueError(f"`contamination` must lie in (0, 0.5]. Got {self.contamination!r}.")
        rows = self._learn(X, sample_weight)
        self.crowd_ = Crowd(self.machine_, self._table_columns(), generator=self._generator())
        self.offset_ = float(np.percentile(self._score(rows), 100 * self.contamination))
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Return minus the anomaly of each row, in standard deviations: the lower, the stranger."""
        check_is_fitted(self)
        return self._score(self._read(X))

    def _score(self, rows: np.ndarray) -> np.ndarray:
        encoded = (self.columns_.encode(rows[block], torch.float64) for block in in_blocks(rows, rows.shape[1]))
        score = as_rows([-self.crowd_.oddness(x)[0] for x in encoded])
        score[self.columns_.impossible(rows)] = -np.inf
        return score

    def decision_function(self, X: Any) -> np.ndarray:
        """Return `score_samples(X) - offset_`: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return -1 for outliers and 1 for the others."""
        return np.where(self.decision_function(X) < 0, -1, 1)
