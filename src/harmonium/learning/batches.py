"""Batches from what people have: tensors, arrays, data sets, loaders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from harmonium import native

Source = Tensor | np.ndarray | tuple[Any, ...] | Dataset[Any] | DataLoader[Any]


class Batches:
    """Rows of a data source by their numbers; integers and booleans stay so until a batch is used.

    A tuple of arrays gives tuples of rows, such as images and labels; a tuple of one is that one. A `DataLoader` brings
    its own order.
    """

    def __init__(self, source: Source) -> None:
        self.loader = source if isinstance(source, DataLoader) else None
        self.dataset = source if self.loader is None and isinstance(source, Dataset) else None
        parts = source if isinstance(source, tuple) else (source,)
        self.paired = len(parts) > 1
        self.columns = () if self.loader is not None or self.dataset is not None else tuple(_tensor(p) for p in parts)
        if len({len(column) for column in self.columns}) > 1:
            raise ValueError(
                f"All parts of the data must have as many rows. Got {[len(column) for column in self.columns]}."
            )

    def __len__(self) -> int:
        if self.loader is not None:
            return len(self.loader.dataset)  # type: ignore[arg-type]
        return len(self.dataset) if self.dataset is not None else len(self.columns[0])  # type: ignore[arg-type]

    @property
    def x(self) -> Tensor | None:
        """All rows of the data itself, if they are in memory."""
        return self.columns[0] if self.columns else None

    def rows(self, index: Tensor, *, as_floats: bool = False) -> Any:
        """Return the rows with these numbers; `as_floats` may turn bytes into floats on the way, which saves a pass."""
        if self.dataset is not None:
            return _stack([self.dataset[int(i)] for i in index])
        if self.paired:
            return tuple(column.index_select(0, index.to(column.device)) for column in self.columns)
        picked = native.pick_rows(self.columns[0], index) if as_floats else None
        return self.columns[0].index_select(0, index.to(self.columns[0].device)) if picked is None else picked

    def in_turn(self, order: Tensor, batch_size: int, *, as_floats: bool = False) -> Iterator[tuple[Tensor, Any]]:
        """Go through the rows with these numbers, batch by batch: the numbers and the rows."""
        if len(order) and not (order.min() >= 0 and order.max() < len(self)):
            raise IndexError(
                f"The order of the data names rows from {order.min()} to {order.max()}. There are {len(self)}. "
                "A run goes on with the data it began with."
            )
        for index in order.split(batch_size):
            yield index, self.rows(index, as_floats=as_floats)

    def loaded(self) -> Iterator[Any]:
        """Go through a loader once."""
        if self.loader is None:
            raise TypeError("Only a DataLoader can be gone through in its own order.")
        for batch in self.loader:
            if isinstance(batch, list | tuple):
                yield tuple(batch) if len(batch) > 1 else batch[0]
            else:
                yield batch


def ends(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the smallest and the largest value of each column.

    128 rows are taken as one: few long rows are read four times as fast as many short ones.
    """
    n = len(x) // 128
    if n == 0:
        return x.amin(0), x.amax(0)
    long, left = x[: 128 * n].reshape(n, -1), x[128 * n :]
    low, high = (best.view(128, *x.shape[1:]) for best in (long.amin(0), long.amax(0)))
    return torch.cat([low, left]).amin(0), torch.cat([high, left]).amax(0)


def _tensor(data: Any) -> Tensor:
    if isinstance(data, Tensor):
        return data
    if isinstance(data, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(data) if data.flags.writeable else data.copy())
    raise TypeError(
        f"Data must be a tensor, a NumPy array, a tuple of them, a Dataset or a DataLoader. Got {type(data).__name__}. "
        "Convert it with torch.as_tensor."
    )


def _stack(items: list[Any]) -> Any:
    if isinstance(items[0], tuple | list) and len(items[0]) == 1:
        items = [item[0] for item in items]
    if isinstance(items[0], tuple | list):
        return tuple(torch.stack([torch.as_tensor(item[i]) for item in items]) for i in range(len(items[0])))
    return torch.stack([torch.as_tensor(item) for item in items])
