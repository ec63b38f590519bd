"""Rows that a density finds improbable."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from harmonium.sklearn.table_estimator import TableEstimator


class BoltzmannOutlier(OutlierMixin, TableEstimator):
    """Outliers are rows of low density: `score_samples` are nats, `decision_function` is negative for outliers.

    `contamination` is the share of the training rows that count as outliers; the other parameters are those of
    `BoltzmannDensity`. A row with NaN is judged by the values that it has.

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
        """Learn the density of the rows of X, and from which nats on they count as outliers; `y` is ignored."""
        if not 0 < self.contamination <= 0.5:
            raise ValueError(f"`contamination` must lie in (0, 0.5]. Got {self.contamination!r}.")
        rows = self._learn(X, sample_weight)
        self.offset_ = float(np.percentile(self._log_density(rows), 100 * self.contamination))
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Return `log p` of the observed values of each row in nats: the lower, the stranger."""
        check_is_fitted(self)
        return self._log_density(self._read(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return `score_samples(X) - offset_`: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """Return -1 for outliers and 1 for the others."""
        return np.where(self.decision_function(X) < 0, -1, 1)
