"""Batches from what people have: tensors, arrays, tables, mappings of them, data sets, loaders."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

from harmonium import native
from harmonium.data import BlockRows
from harmonium.draws import draw_permutation
from harmonium.learning.sparse_rows import SparseRows
from harmonium.models import BoltzmannMachine, RatingRBM
from harmonium.models.layers import data_layer, layers_of, paired_layers
from harmonium.types import State, Values, as_tensor
from harmonium.units import Units

Source = Values | Mapping[str, Values] | tuple[Any, ...] | Dataset[Any] | DataLoader[Any]
"""What batches are made of."""


class Batches:
    """Rows of a data source by their numbers, as states of a model; integers and booleans stay so until they are used.

    A mapping names the layers of the model; anything else is its data layer, or a table of ratings. A tuple of data and
    labels is for a model that has a place for labels. A `DataLoader` brings its own order. Rows of a sparse matrix
    become dense batch by batch.
    """

    def __init__(self, source: Source, model: nn.Module) -> None:
        self.layer, self.known, self.paired = data_layer(model), layers_of(model), paired_layers(model)
        self.observed = model.observed if isinstance(model, RatingRBM) else None
        self.given = model.given if isinstance(model, BoltzmannMachine) else ()
        if SparseRows.holds(source):
            some = next(model.parameters(), torch.empty(0))
            source = SparseRows(source, like=some.dtype)
        self.loader = source if isinstance(source, DataLoader) else None
        self.loader_start: Tensor | None = None
        self.dataset = source if self.loader is None and isinstance(source, Dataset) else None
        is_stored = self.loader is None and self.dataset is None
        self.columns: State = self.as_state(source) if is_stored else {}
        sizes = {name: len(column) for name, column in self.columns.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"All layers of the data must have as many rows. Got {sizes}.")
        for name, column in self.columns.items():
            _check_plain(name, column)
            units = model.layer(name) if isinstance(model, BoltzmannMachine) else None
            if units is not None and tuple(column.shape) == units.shape and len(units.shape) == 1:
                raise ValueError(
                    f"Layer {name!r} of the data must have shape (n, {units.shape[0]}), one row a sample. Got "
                    f"{tuple(column.shape)}, a single one without its row. Give x[None], and more samples if there are."
                )

    def __len__(self) -> int:
        if self.loader is not None:
            return len(self.loader.dataset)  # type: ignore[arg-type]
        if self.dataset is not None:
            return len(self.dataset)  # type: ignore[arg-type]
        return len(next(iter(self.columns.values())))

    def as_state(self, batch: Any) -> State:
        """Return what a source or a loader gives as a state of the model, or say which layers it takes."""
        if isinstance(batch, Mapping):
            parts = dict(batch)
        elif isinstance(batch, tuple | list) and not _is_numbers(batch):
            parts = dict(zip(self.paired, batch, strict=False))
            if len(batch) > len(self.paired):
                raise ValueError(
                    f"The data have {len(batch)} parts, and this model takes {', '.join(map(repr, self.paired))} from "
                    f"a tuple. Labels need a layer of their own: build a machine that has one and give a mapping, "
                    f"{{{self.layer!r}: x, 'label': y}}; or leave them out."
                )
        else:
            parts = {self.layer: batch}
        if self.observed is not None and set(parts) == {self.layer}:
            parts = dict(self.observed(parts[self.layer]))
        for name in parts:
            if name not in self.known:
                raise ValueError(
                    f"The data hold layer {name!r}, which this model does not have. Its layers are "
                    f"{', '.join(map(repr, self.known))}. Use one of them, or leave it out."
                )
        if parts and set(parts) <= set(self.given):
            raise ValueError(
                f"The data hold conditions alone, {', '.join(map(repr, parts))}: there is nothing to learn. Give layer "
                f"{self.layer!r}, too."
            )
        if not parts:
            raise ValueError(f"The data hold no layer. Give some of {', '.join(map(repr, self.known))}.")
        return {name: as_tensor(value) for name, value in parts.items()}

    def rows(self, index: Tensor, *, as_floats: bool = False, channels_last: bool = False) -> State:
        """Return the rows with these numbers.

        `as_floats` may turn bytes into floats on the way, images with channels innermost where these are to be last:
        that saves a pass or two.
        """
        if self.dataset is not None:
            fetch = getattr(self.dataset, "__getitems__", None)  # PyTorch's way to ask for several rows at once
            items = [self.dataset[int(i)] for i in index] if fetch is None else fetch(index.tolist())
            return self.as_state(_stack(items))
        if as_floats and len(self.columns) == 1:
            column = self.columns.get(self.layer)
            picked = None if column is None else native.pick_rows(column, index, channels_last=channels_last)
            if picked is not None:
                return {self.layer: picked}
        return {name: column.index_select(0, index.to(column.device)) for name, column in self.columns.items()}

    def holds_values(self, units: Mapping[str, Units]) -> bool:
        """Return whether integers of the data layer are values of its units, one for each, and no class numbers."""
        layer, column = units.get(self.layer), self.columns.get(self.layer)
        return layer is None or column is None or tuple(column.shape[1:]) == layer.shape

    def check_integers(self, units: Mapping[str, Units], *, like: Tensor) -> bool:
        """Check all rows at once where that is cheap, integers in memory; return False where rows are left to check."""
        checked = bool(self.columns and units)
        for name, x in self.columns.items() if checked else ():
            layer = units[name]
            has_values = tuple(x.shape[1:]) == layer.shape
            if x.is_floating_point() or (layer.sites != layer.shape and has_values):
                checked = False  # of one-hot vectors the ends tell nothing
                continue
            x = x.view(torch.uint8) if x.dtype == torch.bool else x
            if has_values and type(layer).check_support is Units.check_support and len(x):
                # All units take the same values: the ends of all are found six times as fast as those of each column.
                bounds = torch.stack(x.aminmax()).view(2, *(1,) * len(layer.shape)).expand(2, *layer.shape)
            else:
                bounds = torch.stack(ends(x))
            encoded = layer.encoded(bounds, like=like)
            if not bool(encoded.isnan().any()):
                layer.check_support(encoded, name)
        return checked

    def draw_order(self, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw the order of an epoch: a permutation of the rows, or what data that lie in blocks make of it."""
        if generator is not None and generator.device.type != "cpu":
            raise ValueError("The order of the data is drawn on the CPU. Give `fit` a CPU generator.")
        if isinstance(self.dataset, BlockRows):
            return self.dataset.draw_order(generator=generator)
        return draw_permutation(len(self), generator=generator)

    def in_turn(
        self,
        order: Tensor,
        batch_size: int,
        *,
        position: int = 0,
        as_floats: bool = False,
        channels_last: bool = False,
        mine: Callable[[Tensor], Tensor] | None = None,
    ) -> Iterator[tuple[Tensor, State]]:
        """Go through the rows in an order from `position` on, batch by batch: the numbers and the rows, if mine."""
        for index in self._numbers(order, batch_size, position):
            numbers = index if mine is None else mine(index)
            yield index, self.rows(numbers, as_floats=as_floats, channels_last=channels_last)

    def _numbers(self, order: Tensor, batch_size: int, position: int) -> Iterator[Tensor]:
        if isinstance(self.dataset, BlockRows):
            yield from self.dataset.in_order(order, batch_size, position)
            return
        if len(order) and not (order.min() >= 0 and order.max() < len(self)):
            raise IndexError(
                f"The order of the data names rows from {order.min()} to {order.max()}. There are {len(self)}. "
                "A run goes on with the data it began with."
            )
        if position < len(order):
            yield from order[position:].split(batch_size)

    def loaded(self, n_passed: int = 0) -> Iterator[State]:
        """Go through a loader once, from the batch after so many on.

        The loader begins in the random state in which it began this epoch (`loader_start`), and loads what is passed
        over once more: its order and what its data draw are then those of an epoch never interrupted.
        """
        if self.loader is None:
            raise TypeError("Only a DataLoader can be gone through in its own order.")
        own = self.loader.generator
        if n_passed == 0:
            self.loader_start = None if own is None else own.get_state()
        elif own is not None and self.loader_start is not None:
            own.set_state(self.loader_start)
        elif isinstance(self.loader.sampler, RandomSampler):
            raise ValueError(
                "A DataLoader that shuffles by PyTorch's global random numbers cannot go on within an epoch: nobody "
                "knows its order. Give it a generator of its own: DataLoader(…, shuffle=True, "
                "generator=torch.Generator().manual_seed(0))."
            )
        for batch in itertools.islice(self.loader, n_passed, None):
            yield self.as_state(batch)


def _check_plain(name: str, x: Tensor) -> None:
    """Raise unless a layer is plain real numbers in memory."""
    if x.layout is not torch.strided or x.is_meta or x.is_quantized or x.is_complex():
        kinds = {
            "sparse, beside other layers": x.layout is not torch.strided,
            "complex": x.is_complex(),
            "quantized": x.is_quantized,
        }
        what = next((word for word, yes in kinds.items() if yes), "without values (meta)")
        raise TypeError(
            f"Layer {name!r} of the data must be a plain tensor of real numbers. Got one that is {what}. "
            "Convert it first: x.to_dense(), x.real, x.dequantize()."
        )
    if x.dtype in (torch.uint16, torch.uint32, torch.uint64):
        raise TypeError(f"Layer {name!r} of the data is {x.dtype}, with which PyTorch does not compute. Use x.long().")


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


def _is_numbers(batch: tuple[Any, ...] | list[Any]) -> bool:
    """Return whether a list is one array written out, and not a list of parts."""
    first = batch[0] if batch else 0
    return isinstance(first, int | float | bool) or (isinstance(first, list) and _is_numbers(first))


def _stack(items: list[Any] | Tensor) -> Any:
    if isinstance(items, Tensor):
        return items
    first = items[0]
    if isinstance(first, Mapping):
        return {name: torch.stack([torch.as_tensor(item[name]) for item in items]) for name in first}
    if isinstance(first, tuple | list):
        return tuple(torch.stack([torch.as_tensor(item[i]) for item in items]) for i in range(len(first)))
    return torch.stack([torch.as_tensor(item) for item in items])
