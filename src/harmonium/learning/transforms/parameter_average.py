"""The parameters, averaged over updates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast
from weakref import WeakKeyDictionary

import torch
from torch import nn

from harmonium.learning.transforms.base import Transform
from harmonium.models import BoltzmannMachine
from harmonium.types import State, without_gradient

_PLACES: WeakKeyDictionary[nn.Module, list[tuple[str, dict[str, nn.Parameter], str]]] = WeakKeyDictionary()


@dataclass
class ParameterAverage(Transform):
    """Keep an average of the parameters, `θ̄ ← d θ̄ + (1 - d) θ` with `d = min(decay, (t + 1)/(t + 10))` at update t.

    Often a better model than the last one. While d rises to `decay` the average looks back over about a ninth of the
    updates so far, so that it never holds on to where the parameters began. It starts at update `start`;
    `swap(model)` exchanges the parameters with their average.
    """

    decay: float = 0.999
    start: int = 0
    n_updates: int = 0
    average: State = field(default_factory=dict, repr=False)

    @without_gradient
    def after(self, model: nn.Module) -> None:
        """Take the new parameters into the average."""
        self.n_updates += 1
        if self.n_updates <= self.start:
            return
        share = self.share(self.n_updates)
        for name, parameters, key in _places(model):
            average, parameter = self.average.get(name), parameters[key]
            if average is None:
                self.average[name] = parameter.detach().clone()
            else:
                average.lerp_(parameter, share)

    def share(self, n_updates: int) -> float:
        """Return `1 - d` after so many updates: what the parameters count that come into an average that is there."""
        t = n_updates - self.start
        return 1 - min(self.decay, (t + 1) / (t + 10))

    @torch.no_grad()
    def swap(self, model: nn.Module) -> None:
        """Exchange the parameters of the model with their average."""
        for name, parameter in model.named_parameters():
            if name in self.average:
                kept = parameter.clone()
                parameter.copy_(self.average[name])
                self.average[name] = kept
        for module in model.modules():
            if isinstance(module, BoltzmannMachine):
                module.project()  # an average of proper laws need not be one

    def state_dict(self) -> State:
        """Return the average and the count of updates."""
        return {**self.average, "n_updates": torch.tensor(self.n_updates)}

    def load_state_dict(self, state: State) -> None:
        """Take them up again."""
        self.average = {name: value.clone() for name, value in state.items() if name != "n_updates"}
        self.n_updates = int(state["n_updates"])


def _places(model: nn.Module) -> list[tuple[str, dict[str, nn.Parameter], str]]:
    """Return where the parameters of a model are: their names, and the dictionaries of their modules with their keys.

    Found once: the walk over the modules costs a small model as much as its products. What a user puts in the place of
    a parameter is seen.
    """
    found = _PLACES.get(model)
    if found is None:
        found = []
        for name, _ in model.named_parameters():
            path, _, key = name.rpartition(".")
            found.append((name, cast("dict[str, nn.Parameter]", model.get_submodule(path)._parameters), key))
        _PLACES[model] = found
    return found
