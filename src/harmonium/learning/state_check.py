"""Is a saved state one of this training? Every tensor is looked at before any of them is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from harmonium.data import BlockRows
from harmonium.learning.state import Plain, part_of, snapshot
from harmonium.types import State

if TYPE_CHECKING:
    from harmonium.learning.training import Training


def check_state(training: Training, tensors: State, plain: Plain) -> None:
    """Raise unless a snapshot could have been taken of this training.

    What a training has from its first moment on must have the same shapes and types; what comes later (moments of the
    optimizer, chains) the shapes that follow from it; what was learned must be finite; the order of the data must hold
    each row once.
    """
    for name, value in snapshot(training)[0].items():
        if name == "order":
            continue
        if name not in tensors:
            raise ValueError(f"{name!r} is missing.")
        if tensors[name].shape != value.shape or tensors[name].dtype != value.dtype:
            raise ValueError(f"{name!r} should be {_described(value)}. Got {_described(tensors[name])}.")
    for name, value in tensors.items():
        learned = name.startswith(("learned.", "good."))
        if learned and value.is_floating_point() and not bool(value.isfinite().all()):
            raise ValueError(f"{name!r} is not finite.")
    parameters = [p for group in training.optimizer.param_groups for p in group["params"]]
    for name, value in part_of(tensors, "learned.optimizer.").items():
        number = int(name.split(".", 1)[0])
        if number >= len(parameters) or (value.ndim and value.shape != parameters[number].shape):
            raise ValueError(f"The optimizer's {name!r} is {_described(value)}, of no parameter here.")
    _check_units(training, tensors)
    _check_place(training, tensors["order"], plain)


def _check_units(training: Training, tensors: State) -> None:
    """Raise unless chains and phases have the shapes of the layers whose names they bear."""
    for prefix in ("learned.objective.", "phases.positive.", "phases.negative."):
        for name, value in part_of(tensors, prefix).items():
            units = training.units.get(name)
            n = 0 if units is None else len(units.shape)
            if units is not None and tuple(value.shape[value.ndim - n :]) != units.shape:
                raise ValueError(f"Layer {name!r} has units of shape {units.shape}. Got {_described(value)}.")


def _check_place(training: Training, order: Tensor, plain: Plain) -> None:
    counts = [plain[name] for name in ("epoch", "update", "position")]
    if not all(type(count) is int and count >= 0 for count in counts):
        raise ValueError(f"Epoch, update and position must be whole numbers. Got {counts}.")
    n, data = len(training.batches), training.batches.dataset
    beyond = n if len(order) or training.batches.loader is not None else 0
    if order.dtype is not torch.int64 or order.ndim != 1 or plain["position"] > beyond:
        raise ValueError(f"The order of the data is {_described(order)}, the position {plain['position']} of {n}.")
    n_places, places = (len(data.blocks()), order[1:]) if isinstance(data, BlockRows) else (n, order)
    if len(order) and not torch.equal(places.sort().values, torch.arange(n_places)):
        raise ValueError(f"The order of the data is not one of its {n} rows, each once.")


def _described(value: Tensor) -> str:
    return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
