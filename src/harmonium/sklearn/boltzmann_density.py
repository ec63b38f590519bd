"""A density of rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from harmonium.models.observed import draw_observed
from harmonium.sklearn.table_estimator import TableEstimator


class BoltzmannDensity(DensityMixin, TableEstimator):
    """The density of rows, `score_samples` in nats, and exact draws from it, `sample`; NaN are summed out.

    Columns of 0 and 1 have probabilities, real ones a density in their own units. The model is an RBM whose hidden
    layer is one category. Parameters: `n_components`, how many values that has, and `shrinkage` of the covariance
    towards independent columns, both chosen on rows left out where they are None; `n_init`, how often the start is
    tried, and `max_iter`, how many updates follow it; `random_state`. Attributes: `machine_`, the trained
    `harmonium.RBM`.

    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [0.2, 1.1], [5.0, 0.0], [5.1, 0.2]])
    >>> density = BoltzmannDensity(2, shrinkage=0.5, random_state=0).fit(X)
    >>> density.score_samples(X).shape, density.sample(3).shape
    ((4,), (3, 2))
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the density of the rows of X; `y` is ignored."""
        self._learn(X, sample_weight)
        return self

    def score_samples(self, X: Any) -> np.ndarray:
        """Return `log p` of the observed values of each row, exactly."""
        check_is_fitted(self)
        return self._log_density(self._read(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean of `log p` over the rows, in nats."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw rows, exactly: no chain has to mix. `random_state` is the estimator's own unless given."""
        check_is_fitted(self)
        state = check_random_state(self.random_state if random_state is None else random_state)
        empty = torch.full((n_samples, len(self.columns_.order)), torch.nan, dtype=torch.float64)
        return self.columns_.decode(draw_observed(self.machine_, empty, generator=self._generator(state)))
