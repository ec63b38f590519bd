"""A gradient transform for every machine of a deep belief network."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from torch import nn

from harmonium.learning.objectives import Phases
from harmonium.learning.objectives.summed_layers import layer_phases
from harmonium.learning.transforms.base import Transform
from harmonium.models import DBN, RBM
from harmonium.types import State


@dataclass
class EachLayer(Transform):
    """Apply a transform to each machine of a DBN with its own two phases, such as `EachLayer(Sparsity(0.1, 1.0))`.

    Each machine has its own copy; one that does not learn in an update is left alone. `layers` says which machines have
    one, all unless told otherwise: `layers=(-1,)` is the top. Transforms that need no phases (decay, norm limits,
    averages) need no `EachLayer`.

    >>> EachLayer(Centering()).transform
    Centering(decay=0.99)
    """

    transform: Transform
    layers: tuple[int, ...] | None = None
    members: list[Transform] = field(default_factory=list, repr=False)

    def before(self, model: nn.Module, phases: Phases | None) -> None:
        """Change the gradients of each machine."""
        for i, rbm, member in self._machines(model):
            if any(p.grad is not None for p in rbm.parameters()):
                member.before(rbm, None if phases is None else layer_phases(phases, i))

    def after(self, model: nn.Module) -> None:
        """Change the parameters of each machine."""
        for _, rbm, member in self._machines(model):
            member.after(rbm)

    def state_dict(self) -> State:
        """Return what each machine's transform carries."""
        return {
            f"{i}.{name}": value for i, member in enumerate(self.members) for name, value in member.state_dict().items()
        }

    def load_state_dict(self, state: State) -> None:
        """Take it up again."""
        n = 1 + max((int(name.split(".", 1)[0]) for name in state), default=-1)
        self.members = [copy.deepcopy(self.transform) for _ in range(n)]
        for i, member in enumerate(self.members):
            member.load_state_dict({k.split(".", 1)[1]: v for k, v in state.items() if k.startswith(f"{i}.")})

    def _machines(self, model: nn.Module) -> list[tuple[int, RBM, Transform]]:
        if not isinstance(model, DBN):
            raise TypeError(f"EachLayer is for a DBN. Got {type(model).__name__}. Use {self.transform!r} itself.")
        while len(self.members) < len(model):
            self.members.append(copy.deepcopy(self.transform))
        wanted = range(len(model)) if self.layers is None else [range(len(model))[i] for i in self.layers]
        return [(i, model[i], self.members[i]) for i in wanted]
