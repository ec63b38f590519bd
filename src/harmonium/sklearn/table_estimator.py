"""What the estimators of tables share: a model of rows of which nothing has to be estimated."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from harmonium.data import Column
from harmonium.learning.fit_table import fit_table
from harmonium.models.observed import counted_log_z, observed_energy
from harmonium.sklearn.base import HarmoniumEstimator, as_rows, in_blocks
from harmonium.sklearn.columns import Columns
from harmonium.sklearn.rows import canonical_rows


class TableEstimator(HarmoniumEstimator):
    """An RBM of a table whose hidden layer is one category: likelihoods, conditionals and draws are exact.

    Its real columns are one Gaussian vector with a covariance, those of 0 and 1 binary. It learns the likelihood of
    what was observed: values that are not known (NaN) are summed out. `n_components` and `shrinkage`, that of the
    covariance towards independent columns, are chosen on rows left out unless given.
    """

    _min_rows = 2

    def __init__(
        self,
        n_components: int | None = None,
        *,
        shrinkage: float | None = None,
        n_init: int = 4,
        max_iter: int = 200,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _learn(self, X: Any, sample_weight: Any) -> np.ndarray:
        """Train a new machine on rows; return them in the order of their own."""
        self._check_counts(n_init=1, max_iter=1, **({} if self.n_components is None else {"n_components": 1}))
        if self.shrinkage is not None and not 0 <= self.shrinkage <= 1:
            raise ValueError(f"`shrinkage` must lie in [0, 1], or be None to be chosen. Got {self.shrinkage!r}.")
        rows = self._read(X, reset=True)
        rows, _, _ = canonical_rows(rows, None, self._weights(sample_weight, rows), repeat=True)
        self.columns_ = Columns(rows)
        self.machine_ = fit_table(
            self._table_columns(),
            self.columns_.encode(rows, torch.float64),
            n_components=None if self.n_components is None else int(self.n_components),
            shrinkage=self.shrinkage,
            n_updates=self.max_iter,
            n_starts=self.n_init,
            generator=self._generator(),
        )
        self.n_iter_ = self.max_iter
        with torch.no_grad():
            self._log_z = float(counted_log_z(self.machine_))
        return np.asarray(rows)

    def _table_columns(self) -> list[Column]:
        """Return the columns as the machine sees them."""
        kinds = ["binary" if binary else "real" for binary in self.columns_.is_binary[self.columns_.order]]
        return [Column(f"x{i}", kind, (0, 1) if kind == "binary" else ()) for i, kind in enumerate(kinds)]

    def _log_density(self, rows: np.ndarray) -> np.ndarray:
        """Return the nats of the observed values of each row, in the units of X; -∞ for a value that cannot be."""
        scales = torch.from_numpy(np.log(self.columns_.scale[self.columns_.order]))
        parts = []
        with torch.no_grad():
            for block in in_blocks(rows, rows.shape[1]):
                x = self.columns_.encode(rows[block], torch.float64)
                parts.append(-observed_energy(self.machine_, x) - self._log_z - (~x.isnan()).double() @ scales)
        nats = as_rows(parts)
        nats[self.columns_.impossible(rows)] = -np.inf
        return nats
