"""Rows of a sparse matrix, made dense a batch at a time."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from harmonium.types import as_tensor


@runtime_checkable
class _Compressible(Protocol):
    """A sparse matrix or array of SciPy."""

    def tocsr(self) -> Any: ...


class SparseRows(Dataset[Tensor]):
    """The rows of a sparse matrix (SciPy's, or a sparse tensor), held once, in the dtype they came in.

    Rows i of the matrix are `values[starts[i]:starts[i+1]]` in the columns `columns[starts[i]:starts[i+1]]`. A batch of
    them becomes dense in the dtype `like`: that costs its own size, `n_rows × n_columns`, and its nonzeros.
    """

    def __init__(self, matrix: Any, *, like: torch.dtype = torch.float32) -> None:
        self.starts, self.columns, self.values, self.shape = _compressed(matrix)
        self.like = like
        if self.values.is_complex() or not bool(self.values.isfinite().all()):
            raise ValueError(
                "Sparse data must hold finite real numbers: what is not stored is 0, not unknown. Missing values (NaN) "
                "need dense rows."
            )

    @staticmethod
    def holds(source: Any) -> bool:
        """Return whether a source of data is a sparse matrix."""
        is_tensor = isinstance(source, Tensor)
        return source.layout is not torch.strided if is_tensor else isinstance(source, _Compressible)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: int) -> Tensor:
        return self.rows(torch.tensor([index]))[0]

    def __getitems__(self, index: list[int]) -> Tensor:
        """Return several rows at once, as one tensor."""
        return self.rows(torch.tensor(index, dtype=torch.int64))

    def rows(self, index: Tensor) -> Tensor:
        """Return the rows with these numbers, dense."""
        first, n = self.starts[index], self.starts[index + 1] - self.starts[index]
        row = torch.repeat_interleave(torch.arange(len(index)), n)
        # The k-th stored value of the batch is the (k - those of the rows before it)-th of its own row.
        stored = torch.arange(len(row)) + torch.repeat_interleave(first - (n.cumsum(0) - n), n)
        dense = torch.zeros(len(index), self.shape[1], dtype=self.like)
        return dense.index_put_((row, self.columns[stored].long()), self.values[stored].to(self.like), accumulate=True)

    def sums(self) -> Tensor:
        """Return the sum of each column."""
        total = torch.zeros(self.shape[1], dtype=torch.float64)
        return total.index_add_(0, self.columns.long(), self.values.double()).to(self.like)


def _compressed(matrix: Any) -> tuple[Tensor, Tensor, Tensor, tuple[int, int]]:
    """Return where rows start, the columns and the values of a sparse matrix, without a copy where it is CSR."""
    if len(matrix.shape) != 2:
        raise ValueError(f"Sparse data must be a matrix, one row a sample. Got shape {tuple(matrix.shape)}.")
    shape = (int(matrix.shape[0]), int(matrix.shape[1]))
    if not isinstance(matrix, Tensor):
        stored = matrix.tocsr()
        return as_tensor(stored.indptr).long(), as_tensor(stored.indices), as_tensor(stored.data), shape
    if matrix.layout is torch.sparse_csr:
        return matrix.crow_indices().long(), matrix.col_indices(), matrix.values(), shape
    flat = matrix.to_sparse().coalesce()
    row, column = flat.indices()
    starts = torch.from_numpy(np.searchsorted(row.numpy(), np.arange(shape[0] + 1)))
    return starts, column, flat.values(), shape
