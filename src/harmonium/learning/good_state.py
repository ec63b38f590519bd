"""A state of training to return to."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from harmonium.types import State

if TYPE_CHECKING:
    from harmonium.learning.training import Training


@dataclass(frozen=True, eq=False)
class GoodState:
    """Parameters, optimizer, chains and averages after one update, copied; `tensors` is the same as one flat state.

    `rates` are the learning rates, one for each group of the optimizer, which are all that changes in a group.
    """

    update: int
    rates: list[float]
    model: State
    optimizer: dict[int, dict[str, Any]]
    objective: State
    transforms: list[State]

    @classmethod
    def of(cls, training: Training) -> GoodState:
        """Return a copy of where a training stands."""
        optimizer = training.optimizer.state_dict()
        return cls(
            training.update,
            [group["lr"] for group in optimizer["param_groups"]],
            copy.deepcopy(training.model.state_dict()),
            copy.deepcopy(optimizer["state"]),
            copy.deepcopy(training.objective.state_dict()) if hasattr(training.objective, "state_dict") else {},
            [copy.deepcopy(transform.state_dict()) for transform in training.transforms],
        )

    def restore(self, training: Training) -> None:
        """Put a training back to this state, all but its place in the data."""
        training.model.load_state_dict(self.model)
        groups = copy.deepcopy(training.optimizer.state_dict()["param_groups"])
        for group, rate in zip(groups, self.rates, strict=True):
            group["lr"] = rate
        training.optimizer.load_state_dict({"state": copy.deepcopy(self.optimizer), "param_groups": groups})
        if hasattr(training.objective, "load_state_dict"):
            training.objective.load_state_dict(copy.deepcopy(self.objective))
        for transform, state in zip(training.transforms, self.transforms, strict=True):
            transform.load_state_dict(copy.deepcopy(state))

    def tensors(self) -> State:
        """Return all of it as tensors by their names; what the optimizer keeps beside tensors are numbers."""
        state: State = {"update": torch.tensor(self.update), "rates": torch.tensor(self.rates, dtype=torch.float64)}
        state |= {f"model.{name}": value for name, value in self.model.items()}
        for i, entry in self.optimizer.items():
            for name, value in entry.items():
                if isinstance(value, torch.Tensor):
                    state[f"optimizer.{i}.{name}"] = value
                elif value is not None:
                    state[f"number.{i}.{name}"] = torch.tensor(value)
        state |= {f"objective.{name}": value for name, value in self.objective.items()}
        for i, part in enumerate(self.transforms):
            state |= {f"transform.{i}.{name}": value for name, value in part.items()}
        return state

    @classmethod
    def from_tensors(cls, state: State, training: Training) -> GoodState:
        """Return the state that `tensors` wrote, for a training of the same making."""
        optimizer: dict[int, dict[str, Any]] = {}
        for kind in ("optimizer.", "number."):
            for name, value in _part(state, kind).items():
                i, key = name.split(".", 1)
                optimizer.setdefault(int(i), {})[key] = value if kind == "optimizer." else value.item()
        return cls(
            int(state["update"]),
            state["rates"].tolist(),
            _part(state, "model."),
            optimizer,
            _part(state, "objective."),
            [_part(state, f"transform.{i}.") for i in range(len(training.transforms))],
        )


def _part(state: State, prefix: str) -> State:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
