"""A training run as tensors and plain values, from which it goes on exactly."""

from __future__ import annotations

from typing import Any

import torch

from harmonium.learning.history import History
from harmonium.learning.objectives.contrastive import Phases
from harmonium.learning.training import Training
from harmonium.types import State

Plain = dict[str, Any]
"""Values that JSON can hold."""


def snapshot(training: Training) -> tuple[State, Plain]:
    """Return all that the run carries, as tensors and as plain values.

    Parameters, optimizer, chains, random state, order of the data, averages and metrics. The tensors are the live
    ones, not copies: write them before the next update.
    """
    tensors: State = {f"model.{name}": value for name, value in training.model.state_dict().items()}
    optimizer = training.optimizer.state_dict()
    plain_state: Plain = {}
    for i, entry in optimizer["state"].items():
        for key, value in entry.items():
            if isinstance(value, torch.Tensor):
                tensors[f"optimizer.{i}.{key}"] = value
            elif value is not None:
                plain_state[f"{i}.{key}"] = value
    for name, value in training.objective.state_dict().items() if hasattr(training.objective, "state_dict") else ():
        tensors[f"objective.{name}"] = value
    for i, holder in enumerate(_holders(training)):
        for name, value in holder.state_dict().items():
            tensors[f"holder.{i}.{name}"] = value
    if training.missing is not None:
        tensors["missing.values"] = training.missing.values
    if training.generator is not None:
        tensors["generator"] = training.generator.get_state()
    tensors["order"] = training.order
    if training.position:  # within an epoch: where to go back to, and at its very end what the monitors look at
        tensors |= {f"good.{name}": value for name, value in training.good.items()}
        tensors |= {f"good_chains.{name}": value for name, value in training.good_chains.items()}
        if training.phases is not None and training.position >= len(training.order):
            tensors |= {f"phases.positive.{name}": value for name, value in training.phases.positive.items()}
            tensors |= {f"phases.negative.{name}": value for name, value in training.phases.negative.items()}
    plain: Plain = {
        "epoch": training.epoch,
        "update": training.update,
        "position": training.position,
        "seconds": training.seconds,
        "optimizer": {"groups": optimizer["param_groups"], "state": plain_state},
        "schedule": _plain_schedule(training),
        "records": training.history.records,
        "messages": training.history.messages,
    }
    return tensors, plain


def restore(training: Training, tensors: State, plain: Plain) -> None:
    """Put a run back to where `snapshot` was taken; the run must have been built from the same configuration."""
    training.model.load_state_dict(_part(tensors, "model."))
    state: dict[int, dict[str, Any]] = {}
    for name, value in {**_part(tensors, "optimizer."), **plain["optimizer"]["state"]}.items():
        i, key = name.split(".", 1)
        state.setdefault(int(i), {})[key] = value.clone() if isinstance(value, torch.Tensor) else value
    training.optimizer.load_state_dict({"state": state, "param_groups": plain["optimizer"]["groups"]})
    for parameter, entry in training.optimizer.state.items():
        for key, value in entry.items():  # as the parameter lies in memory, which fused optimizers rely on
            if isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                entry[key] = torch.empty_like(parameter).copy_(value)
    if hasattr(training.objective, "load_state_dict"):
        training.objective.load_state_dict(_part(tensors, "objective."))
    for i, holder in enumerate(_holders(training)):
        part = _part(tensors, f"holder.{i}.")
        if hasattr(holder, "old"):
            holder.load_state_dict(part, training.model)
        else:
            holder.load_state_dict(part)
    if training.missing is not None:
        training.missing.values.copy_(tensors["missing.values"])
    if training.generator is not None:
        training.generator.set_state(tensors["generator"])
    if training.schedule is not None:
        training.schedule.load_state_dict(plain["schedule"])
    training.order = tensors["order"]
    training.good = {name: value.clone() for name, value in _part(tensors, "good.").items()}
    training.good_chains = _part(tensors, "good_chains.")
    positive, negative = _part(tensors, "phases.positive."), _part(tensors, "phases.negative.")
    training.phases = Phases(positive, negative) if positive else None
    training.epoch, training.update, training.position = plain["epoch"], plain["update"], plain["position"]
    training.seconds = plain["seconds"]
    training.history = History(list(plain["records"]), list(plain["messages"]))


def _holders(training: Training) -> list[Any]:
    return [*training.transforms, *training.monitors]


def _plain_schedule(training: Training) -> Plain:
    if training.schedule is None:
        return {}
    state = training.schedule.state_dict()
    return {name: value for name, value in state.items() if isinstance(value, int | float | list | str | bool)}


def _part(tensors: State, prefix: str) -> State:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
