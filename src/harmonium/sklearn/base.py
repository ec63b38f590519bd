"""What all estimators share: how they read arrays, where randomness comes from, how they learn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, validate_data
from torch import Tensor, nn

from harmonium.learning import Callback, Training, fit
from harmonium.learning.batches import Source
from harmonium.learning.objectives import Objective
from harmonium.learning.sparse_rows import SparseRows
from harmonium.sklearn.columns import Columns
from harmonium.sklearn.rows import EncodedRows


class HarmoniumEstimator(BaseEstimator):
    """An estimator that trains a model of harmonium on arrays, DataFrames or sparse matrices, NaN where not known."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    _min_rows = 1

    def _read(self, X: Any, y: Any = "no_validation", *, reset: bool = False) -> Any:
        """Return the checked rows, and classes where there are some."""
        try:
            found = validate_data(
                self,
                X,
                y,
                accept_sparse="csr" if self.__sklearn_tags__().input_tags.sparse else False,
                dtype=(np.float64, np.float32),
                ensure_all_finite="allow-nan",
                ensure_min_samples=self._min_rows if reset else 1,
                reset=reset,
            )
        except ValueError as error:
            if "could not convert string" not in str(error):
                raise
            raise ValueError(
                f"X must be numbers: {error}. Encode its columns of text, or give the file to `harmonium train --data "
                "table.csv`, which reads them as they are."
            ) from error
        rows = found[0] if isinstance(found, tuple) else found
        if sp.issparse(rows):
            if np.isnan(rows.data).any():
                raise ValueError("Sparse X must not hold NaN: in a sparse matrix what is not stored is 0, not unknown.")
            rows.sum_duplicates()
        return found

    def _weights(self, sample_weight: Any, X: Any) -> np.ndarray | None:
        if sample_weight is None:
            return None
        return np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))

    def _generator(self, random_state: Any = None) -> torch.Generator:
        """Return a generator seeded by `random_state`, the estimator's own unless told."""
        state = check_random_state(self.random_state) if random_state is None else random_state
        return torch.Generator().manual_seed(int(state.randint(2**31 - 1)))

    def _check_counts(self, **least: int) -> None:
        """Raise unless these parameters are whole numbers, at least as large as told."""
        for name, smallest in least.items():
            value = getattr(self, name)
            is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not is_whole or value < smallest:
                raise ValueError(f"`{name}` must be a whole number, at least {smallest}. Got {value!r}.")

    def _check_positive(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, int | float | np.number) or not (math.isfinite(value) and value > 0):
                raise ValueError(f"`{name}` must be a positive number. Got {value!r}.")


class StopAt(Callback):
    """Stops a training after so many updates."""

    def __init__(self, n_updates: int) -> None:
        self.n_updates = n_updates

    def on_update(self, training: Training) -> None:
        """Stop where it is time."""
        training.stop = training.update >= self.n_updates


def source(
    X: Any, columns: Columns, y: np.ndarray | None = None, names: tuple[str, ...] = (), *, fill: bool = False
) -> Source:
    """Return rows as `fit` takes them, with classes where there are some: tensors, or a data set where sparse."""
    if sp.issparse(X):
        return SparseRows(X) if y is None and columns.all_binary else EncodedRows(X, columns, y, names)
    x = columns.encode(X, fill=fill)
    return x if y is None else dict(zip(names, (x, torch.from_numpy(y)), strict=True))


def first_rows(X: Any, columns: Columns) -> Tensor | SparseRows:
    """Return the rows that biases start from, as the units see them: sparse ones of 0 and 1 stay sparse."""
    return SparseRows(X[:10_000]) if sp.issparse(X) and columns.all_binary else columns.encode(X[: n_start(X)])


def learn(
    model: nn.Module,
    data: Source,
    n_rows: int,
    *,
    n_updates: int,
    batch_size: int,
    learning_rate: float,
    objective: Objective | None,
    weights: np.ndarray | None,
    generator: torch.Generator,
    monitors: tuple[Any, ...] = (),
) -> None:
    """Train a model for so many updates by Adam, at a rate that falls to a tenth over the second half."""
    n_batches = math.ceil(n_rows / batch_size)
    epochs = math.ceil(n_updates / n_batches)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], learning_rate)
    fall = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.1 ** max(0.0, 2 * epoch / epochs - 1))
    fit(
        model,
        data,
        objective,
        optimizer=optimizer,
        epochs=epochs,
        batch_size=batch_size,
        weights=weights,
        schedule=fall,
        callbacks=[StopAt(n_updates)],
        monitors=monitors,
        generator=generator,
    )


def in_blocks(X: Any, n_columns: int) -> list[slice]:
    """Return slices of the rows, each of about 2²² values."""
    step = max(1, 2**22 // max(1, n_columns))
    return [slice(i, i + step) for i in range(0, X.shape[0], step)]


def n_start(X: Any) -> int:
    """Return from how many rows the biases start: 10,000, fewer of wide ones, which are dense then."""
    return max(1, min(10_000, 2**23 // max(1, X.shape[1])))


def as_rows(parts: list[Tensor]) -> np.ndarray:
    """Return tensors of rows as one array."""
    return np.asarray(torch.cat(parts).double().numpy())
