"""How the columns of an array become units, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis
from torch import Tensor

from harmonium.units import Bernoulli, Gaussian, Mixed, Units

_FLOOR = 0.02
"""The smallest width of a real column given the hidden units, in units of its spread."""


class Columns:
    """Columns of 0 and 1 are binary, the others real and standardized: `(x - mean)/scale`; missing values are NaN.

    Units see the real columns first. With `unit_interval`, columns that all lie in [0, 1] are binary too, their
    values read as probabilities, as BernoulliRBM does; if one column lies outside, this holds for none of them.
    """

    def __init__(self, X: Any, *, unit_interval: bool = False) -> None:
        mean, variance, low, high, is_binary = _moments(X)
        empty = np.flatnonzero(np.isnan(mean))
        if len(empty):
            raise ValueError(
                f"Column {empty[0]} has no value at all: every row misses it. Drop it before the estimator sees it."
            )
        if unit_interval and bool((low >= 0).all() and (high <= 1).all()):
            is_binary = np.ones_like(is_binary)
        spread = np.sqrt(np.maximum(variance, 0.0))
        spread[spread <= 1e-9 * np.maximum(1.0, np.abs(mean))] = 1.0  # a constant column
        self.is_binary = is_binary
        self.mean, self.scale = np.where(is_binary, 0.0, mean), np.where(is_binary, 1.0, spread)
        self.order = np.argsort(is_binary, kind="stable")
        self.center = torch.from_numpy(np.where(is_binary, mean, 0.0)[self.order])

    @property
    def all_binary(self) -> bool:
        """Whether every column is."""
        return bool(self.is_binary.all())

    def units(self) -> Units:
        """Return the units of a row."""
        n, n_binary = len(self.order), int(self.is_binary.sum())
        if n_binary == n:
            return Bernoulli(n)
        real = Gaussian(n - n_binary, floor=_FLOOR)
        return Mixed(real, Bernoulli(n_binary)) if n_binary else real

    def encode(self, X: Any, dtype: torch.dtype = torch.float32, *, fill: bool = False) -> Tensor:
        """Return rows as the units see them; with `fill`, values that are not known at the mean of their column."""
        rows = X.toarray() if sp.issparse(X) else X
        values = (rows[:, self.order] - self.mean[self.order]) / self.scale[self.order]
        x = torch.from_numpy(np.ascontiguousarray(values)).to(dtype)
        return x.where(~x.isnan(), self.center.to(dtype)) if fill else x

    def decode(self, x: Tensor) -> np.ndarray:
        """Return what units hold as rows: the inverse of `encode`."""
        rows = np.empty(x.shape)
        rows[:, self.order] = x.double().numpy() * self.scale[self.order] + self.mean[self.order]
        return rows

    def log_scale(self) -> float:
        """Return `Σ log scale`: nats of a standardized row less those of the row itself."""
        return float(np.log(self.scale).sum())

    def impossible(self, X: Any) -> np.ndarray:
        """Return which rows hold a value other than 0 and 1 in a binary column: they have probability zero."""
        rows = X[:, np.flatnonzero(self.is_binary)]
        if sp.issparse(rows):
            strange = sp.csr_array(((rows.data != 1) & (rows.data != 0), rows.indices, rows.indptr), shape=rows.shape)
            return np.asarray(strange.sum(1)).ravel() > 0
        return ((rows != 0) & (rows != 1) & ~np.isnan(rows)).any(1)


def _moments(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, variance, least and largest value of each column, and whether it holds 0 and 1 only."""
    if sp.issparse(X):
        mean, variance = mean_variance_axis(X, axis=0)
        low, high = min_max_axis(X, axis=0)
        other = X.indices[(X.data != 0) & (X.data != 1)]
        is_binary = np.ones(X.shape[1], dtype=bool)
        is_binary[other] = False
        return mean, variance, low, high, is_binary
    known = ~np.isnan(X)
    n = known.sum(0)
    safe = np.maximum(n, 1)
    values = np.where(known, X, 0.0).astype(np.float64)
    mean = np.where(n > 0, values.sum(0) / safe, np.nan)
    variance = (np.where(known, X - mean, 0.0) ** 2).sum(0) / safe
    low = np.where(known, X, np.inf).min(0)
    high = np.where(known, X, -np.inf).max(0)
    is_binary = (~known | (X == 0) | (X == 1)).all(0)
    return mean, variance, low, high, is_binary
