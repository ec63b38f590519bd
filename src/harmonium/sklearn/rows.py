"""Rows in an order that is their own: what is learned depends on which rows there are, not on how they are listed."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.utils.data import Dataset

from harmonium.sklearn.columns import Columns

_NUMBERS = 2**22  # held at once
_REPEATS = 16
_ODD = np.uint64(0x9E3779B97F4A7C15)


def canonical_rows(
    X: Any, y: np.ndarray | None = None, sample_weight: np.ndarray | None = None, *, repeat: bool = False
) -> tuple[Any, Any, np.ndarray | None]:
    """Return rows, classes and weights in an order that does not depend on the one they came in.

    A row of weight 0 is left out. Where all weights are whole numbers a row of weight 3 becomes three rows, so that
    weights and repetitions are the same thing to the last bit; otherwise the weights are returned, 1 on average. For
    learning rules that take no weights, `repeat` then repeats rows in proportion to them, 16 times on average.
    """
    index = np.arange(X.shape[0]) if sample_weight is None else np.flatnonzero(sample_weight)
    keys = row_keys(X)
    if y is not None:
        keys = keys + _mixed(y.astype(np.float64)) * _ODD
    index = index[np.argsort(keys[index], kind="stable")]
    weights = None if sample_weight is None else sample_weight[index]
    if weights is not None and bool((weights == np.floor(weights)).all()):
        index, weights = np.repeat(index, weights.astype(np.int64)), None
    elif weights is not None and repeat:
        ends = np.floor(weights.cumsum() / weights.sum() * _REPEATS * len(index) + 0.5).astype(np.int64)
        index, weights = np.repeat(index, np.diff(ends, prepend=0)), None
    elif weights is not None:
        weights = weights / weights.mean()
    return X[index], None if y is None else y[index], weights


def row_keys(X: Any) -> np.ndarray:
    """Return a number for each row that depends on its values alone: `Σ_j mix(x_j) m_j` modulo 2⁶⁴, m_j odd.

    Zeros add nothing, so that sparse and dense rows have the same number.
    """
    factors = _mixed_bits(np.arange(1, X.shape[1] + 1, dtype=np.uint64) * _ODD) | np.uint64(1)
    if sp.issparse(X):
        entries = _mixed(X.data) * factors[X.indices]
        return sp.csr_array((entries, X.indices, X.indptr), shape=X.shape) @ np.ones(X.shape[1], dtype=np.uint64)
    step = max(1, _NUMBERS // X.shape[1])
    keys = [(_mixed(X[i : i + step]) * factors).sum(1) for i in range(0, X.shape[0], step)]
    return np.concatenate(keys)


def _mixed(values: np.ndarray) -> np.ndarray:
    """Return the bits of numbers, stirred; 0 stays 0, and so does -0."""
    return _mixed_bits((np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64))


def _mixed_bits(bits: np.ndarray) -> np.ndarray:
    """Return 64-bit words stirred as in the finalizer of SplitMix64 (Steele et al. 2014)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


class EncodedRows(Dataset[Any]):
    """The rows of a sparse matrix, made dense a batch at a time as the units see them; with classes, pairs of both."""

    def __init__(self, X: Any, columns: Columns, y: np.ndarray | None = None, names: tuple[str, ...] = ()) -> None:
        self.X, self.columns, self.y, self.names = X, columns, y, names

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __getitem__(self, index: int) -> Any:
        return self.__getitems__([index])[0]

    def __getitems__(self, index: list[int]) -> list[Any]:
        """Return several rows at once."""
        x: Tensor = self.columns.encode(self.X[index])
        if self.y is None:
            return list(x)
        y = torch.from_numpy(self.y[index])
        return [dict(zip(self.names, pair, strict=True)) for pair in zip(x, y, strict=True)]
