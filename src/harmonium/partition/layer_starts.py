"""Where mean field may start: at the configurations of one layer, or at its units one by one."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.types import State

_MOST_CONFIGURATIONS = 1024  # of a layer that is gone through as a whole
_MOST_UNITS = 1024  # of a layer whose units are gone through one by one
_FIRM = 200.0  # a field that no unit resists


def layer_starts(machine: BoltzmannMachine) -> list[State]:
    """Return full states that go through each finite layer in turn, the other layers where that layer puts them.

    A small layer is gone through as a whole, a larger one unit by unit: each all the way up and all the way down, the
    others at the means of their biases. So the components of a mixture, and wells that a single hidden unit opens, are
    found however narrow they are; random starts meet such a one as seldom as chains do.
    """
    means = {name: machine.layer(name).mean(machine.bias_field(name)) for name in machine.layers}
    starts = []
    for name in machine.layers:
        values = _through(machine, name)
        if values is None:
            continue
        state = {other: mean.expand(len(values), *mean.shape).clone() for other, mean in means.items()}
        state[name] = values
        for block in machine.blocks():
            for other in block:
                if other != name:
                    state[other] = machine.layer(other).mean(machine.field(other, state))
        starts.append(state)
    return starts


def _through(machine: BoltzmannMachine, name: str) -> Tensor | None:
    """Return the values that a layer goes through, `(n, *shape)`; None if it is too large, or not finite."""
    units, bias = machine.layer(name), machine.bias_field(name)
    n, width = units.n_configurations(), math.prod(units.shape)
    if n is not None and n <= _MOST_CONFIGURATIONS:
        return units.configurations(torch.arange(n, device=bias.device)).to(bias)
    if n is None or width > _MOST_UNITS:
        return None
    at = torch.eye(width, dtype=torch.bool, device=bias.device).unflatten(1, units.shape)
    return torch.cat([units.mean(torch.where(at, field, bias)) for field in (_FIRM, -_FIRM)])
