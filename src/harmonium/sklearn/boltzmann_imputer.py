"""Values that are not known, from those that are."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from harmonium.evaluation.imputation import draw_imputations
from harmonium.sklearn.base import in_blocks
from harmonium.sklearn.table_estimator import TableEstimator

_N_DRAWS = 100


class BoltzmannImputer(OneToOneFeatureMixin, TransformerMixin, TableEstimator):
    """Fills in NaN from the law of a row given what is known of it, exactly.

    Real columns get their conditional mean, over 100 exact draws, columns of 0 and 1 the more probable value. With
    `sample_posterior` one draw is taken instead: transform several times for multiple imputation. The other parameters
    are those of `BoltzmannDensity`. Values that are known stay as they are.

    >>> import numpy as np
    >>> X = np.array([[0.0, 0.0], [0.1, 0.1], [5.0, 1.0], [5.1, 1.0], [5.2, np.nan]])
    >>> filled = BoltzmannImputer(2, shrinkage=1.0, random_state=0).fit_transform(X)
    >>> float(filled[-1, 0]), bool(filled[-1, 1] > 0.5)
    (5.2, True)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        sample_posterior: bool = False,
        shrinkage: float | None = None,
        n_init: int = 4,
        max_iter: int = 200,
        random_state: Any = None,
    ) -> None:
        super().__init__(n_components, shrinkage=shrinkage, n_init=n_init, max_iter=max_iter, random_state=random_state)
        self.sample_posterior = sample_posterior

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the law of the rows of X, holes and all; `y` is ignored."""
        self._learn(X, sample_weight)
        self.random_state_ = check_random_state(self.random_state)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return X with its NaN filled in."""
        check_is_fitted(self)
        rows = self._read(X)
        if not np.isnan(rows).any():
            return np.array(rows)
        n_draws, state = (1, self.random_state_) if self.sample_posterior else (_N_DRAWS, None)
        generator = self._generator(state)
        drawn = [
            draw_imputations(
                self.machine_, self.columns_.encode(rows[block], torch.float64), n_draws, generator=generator
            ).mean(0)
            for block in in_blocks(rows, n_draws * rows.shape[1])
        ]
        values = self.columns_.decode(torch.cat(drawn))
        binary = self.columns_.is_binary
        values[:, binary] = np.round(values[:, binary])
        return np.where(np.isnan(rows), values, rows).astype(rows.dtype)
