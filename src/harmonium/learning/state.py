"""The state of a training as tensors and plain values: to go on from exactly, or to go back to."""

from __future__ import annotations

import copy as copying
from typing import TYPE_CHECKING, Any

import torch

from harmonium.learning.history import History
from harmonium.learning.objectives import Phases
from harmonium.types import State

if TYPE_CHECKING:
    from harmonium.learning.training import Training

Plain = dict[str, Any]
"""Values that JSON can hold."""


def learned(training: Training, *, copy: bool = False) -> State:
    """Return what learning has made so far: parameters, optimizer, chains, averages, all as tensors by their names.

    They are the live ones unless copied. What an optimizer keeps beside tensors are numbers; of its groups only the
    learning rates change.
    """
    optimizer = training.optimizer.state_dict()
    rates = [float(group["lr"]) for group in optimizer["param_groups"]]
    state: State = {"update": torch.tensor(training.update), "rates": torch.tensor(rates, dtype=torch.float64)}
    state |= {f"model.{name}": value for name, value in training.model.state_dict().items()}
    for i, moments in optimizer["state"].items():
        for name, value in moments.items():
            if isinstance(value, torch.Tensor):
                state[f"optimizer.{i}.{name}"] = value
            elif value is not None:
                state[f"number.{i}.{name}"] = torch.tensor(value)
    state |= {f"objective.{name}": value for name, value in training.objective.state_dict().items()}
    for i, transform in enumerate(training.transforms):
        state |= {f"transform.{i}.{name}": value for name, value in transform.state_dict().items()}
    return {name: value.detach().clone() for name, value in state.items()} if copy else state


def restore_learned(training: Training, state: State) -> None:
    """Put a training back to what `learned` returned, all but its place in the data; the tensors are copied."""
    state = {name: value.clone() for name, value in state.items()}
    training.model.load_state_dict(part_of(state, "model."))
    entries: dict[int, Plain] = {}
    for kind in ("optimizer.", "number."):
        for name, value in part_of(state, kind).items():
            number, key = name.split(".", 1)
            entries.setdefault(int(number), {})[key] = value if kind == "optimizer." else value.item()
    groups = copying.deepcopy(training.optimizer.state_dict()["param_groups"])
    for group, rate in zip(groups, state["rates"].tolist(), strict=True):
        group["lr"] = rate
    training.optimizer.load_state_dict({"state": entries, "param_groups": groups})
    for parameter, moments in training.optimizer.state.items():
        for key, value in moments.items():  # as the parameter lies in memory, which fused optimizers rely on
            if isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                moments[key] = torch.empty_like(parameter).copy_(value)
    training.objective.load_state_dict(part_of(state, "objective."))
    for i, transform in enumerate(training.transforms):
        transform.load_state_dict(part_of(state, f"transform.{i}."))


def snapshot(training: Training) -> tuple[State, Plain]:
    """Return all that the run carries, as tensors and as plain values.

    What was learned, the random state, the order of the data, what monitors hold, and metrics. The tensors are the live
    ones, not copies: write them before the next update. All workers of a group take it together, and get the chains of
    all.
    """
    tensors = {f"learned.{name}": value for name, value in learned(training).items()}
    for i, monitor in enumerate(training.monitors):
        tensors |= {f"monitor.{i}.{name}": value for name, value in monitor.state_dict().items()}
    tensors |= {f"missing.{name}": value for name, value in training.missing.values.items()}
    if training.generator is not None:
        tensors["generator"] = training.generator.get_state()
    tensors["order"] = training.order
    if training.position:  # within an epoch: where to go back to, and at its very end what the monitors look at
        tensors |= {f"good.{name}": value for name, value in training.good.items()}
        rows = training.rows if training.division is None else training.division.seen(training.rows)
        tensors |= {f"rows.{name}": value for name, value in rows.state_dict().items()}
        if training.batches.loader_start is not None:
            tensors["loader"] = training.batches.loader_start
        if training.phases is not None and (training.has_seen_all or training.batches.loader is not None):
            both = training.phases if training.division is None else training.division.phases(training.phases)
            positive, negative, _ = both or training.phases
            tensors |= {f"phases.positive.{name}": value for name, value in positive.items()}
            tensors |= {f"phases.negative.{name}": value for name, value in negative.items()}
    plain: Plain = {
        "epoch": training.epoch,
        "update": training.update,
        "position": training.position,
        "seconds": training.seconds,
        "schedule": _plain_schedule(training),
        "hidden": list(training.phases.hidden) if training.phases is not None else [],
        "records": training.history.records,
        "messages": training.history.messages,
    }
    return tensors if training.division is None else training.division.joined(training, tensors), plain


def restore(training: Training, tensors: State, plain: Plain) -> None:
    """Put a run back to where `snapshot` was taken; the run must have been built from the same configuration."""
    if training.division is not None:
        tensors = training.division.own(training, tensors)
    restore_learned(training, part_of(tensors, "learned."))
    for i, monitor in enumerate(training.monitors):
        monitor.load_state_dict(part_of(tensors, f"monitor.{i}."))
    for name, value in training.missing.values.items():
        value.copy_(tensors[f"missing.{name}"])
    if training.generator is not None:
        training.generator.set_state(tensors["generator"])
    if training.schedule is not None:
        training.schedule.load_state_dict(plain["schedule"])
    training.order = tensors["order"]
    training.batches.loader_start = tensors.get("loader")
    part = None if training.division is None else training.division.rows(training.batch_size)
    training.rows.load_state_dict(part_of(tensors, "rows."), part=part)
    training.good = {name: value.clone() for name, value in part_of(tensors, "good.").items()}
    positive, negative = part_of(tensors, "phases.positive."), part_of(tensors, "phases.negative.")
    training.phases = Phases(positive, negative, tuple(plain["hidden"])) if positive else None
    training.epoch, training.update, training.position = plain["epoch"], plain["update"], plain["position"]
    training.seconds = plain["seconds"]
    training.history = History(list(plain["records"]), list(plain["messages"]))


def part_of(state: State, prefix: str) -> State:
    """Return the entries whose names begin so, without that beginning."""
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def _plain_schedule(training: Training) -> Plain:
    if training.schedule is None:
        return {}
    state = training.schedule.state_dict()
    return {name: value for name, value in state.items() if isinstance(value, int | float | list | str | bool)}
