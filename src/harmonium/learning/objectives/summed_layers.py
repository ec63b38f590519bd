"""All layers of a deep belief network at once."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from harmonium.learning.objectives.base import Case, Objective, Phases, add_scaled
from harmonium.learning.objectives.cd import CD
from harmonium.learning.objectives.contrastive import Contrastive, draw_exactly, small_machine
from harmonium.learning.objectives.mean_field_cd import MeanFieldCD
from harmonium.models import DBN
from harmonium.types import State, as_state


@dataclass
class SummedLayers(Objective):
    """`Σ_l F_l(v_l) - F_l(v'_l)`: the losses of all machines summed, for one optimizer (Hwang et al. 2020, section 4).

    `objective` is what each machine learns by: `MeanFieldCD()` is the paper's, `CD()` and `PCD()` draw; each machine
    has its own copy, with its own chains. `v_{l+1}` are the means that `v_l` gives at the level above (draws with
    `sample_up`), held constant as v' is, so that a machine learns from its own loss alone. `weights` has a factor for
    the loss of each machine, the lowest first; 0 leaves it out.

    >>> dbn = DBN.from_spec("conv 8 4x4/2, dense 10", shape=(1, 8, 8), levels=255)
    >>> SummedLayers().loss(dbn, torch.full((5, 1, 8, 8), 100.0)).shape
    torch.Size([])
    """

    weighs_rows: ClassVar[bool] = True

    objective: Contrastive = field(default_factory=MeanFieldCD)
    sample_up: bool = False
    weights: tuple[float, ...] | None = None
    members: list[Contrastive] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def examples(cls) -> list[Case]:
        """Return a network of one machine, which rests where the machine does."""
        machine = small_machine()
        draw = partial(draw_exactly, machine, layers=(machine.data_layer,))
        return [Case(lambda *, generator: cls(CD()), DBN([machine]), draw)]

    def check(self, model: nn.Module) -> None:
        """Raise unless the model is a deep belief network."""
        self._network(model)

    def divides(self, model: nn.Module) -> bool:
        """Return whether the rule of each machine can be divided, and keeps no chains."""
        pairs = zip(self._network(model), self.members, strict=True)
        return type(self) is SummedLayers and all(m.chain_axis() is None and m.divides(rbm) for rbm, m in pairs)

    def loss(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the summed loss, the mean over the batch."""
        dbn = self._network(model)
        x = as_state(batch, dbn.data_layer)[dbn.data_layer]
        total = x.new_zeros(())
        for i, (rbm, member) in enumerate(zip(dbn, self.members, strict=True)):
            v = dbn.enter(i, x)
            if weight := self._weight(i):
                total = total + weight * member.loss(rbm, v, generator=generator)
            with torch.no_grad():
                x = self._next(dbn, i, v, None if self.sample_up else dbn.hidden_mean(i, v), generator)
        return total

    def accumulate_grad(
        self,
        model: nn.Module,
        batch: Tensor | Mapping[str, Tensor],
        *,
        weight: Tensor | None = None,
        index: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Phases:
        """Add the gradient of the summed loss to the gradients; return the phases of all machines (`layer_phases`)."""
        dbn = self._network(model)
        x = as_state(batch, dbn.data_layer)[dbn.data_layer]
        positive: State = {}
        negative: State = {}
        hidden: list[str] = []
        for i, (rbm, member) in enumerate(zip(dbn, self.members, strict=True)):
            v = dbn.enter(i, x)
            factor = self._weight(i)
            if factor:
                phases = add_scaled(factor, member, rbm, v, weight=weight, generator=generator)
                if phases is None:
                    raise TypeError(f"SummedLayers needs objectives that contrast two phases. Got {member!r}.")
            else:
                with torch.no_grad():
                    phases = Phases(state := rbm.infer(v), state, rbm.layers[1:])
            positive |= {f"{i}.{name}": value for name, value in phases.positive.items()}
            negative |= {f"{i}.{name}": value for name, value in phases.negative.items()}
            hidden += [f"{i}.{name}" for name in phases.hidden]
            if i + 1 < len(dbn):
                above = rbm.layers[-1]
                x = self._next(dbn, i, v, None if self.sample_up else phases.positive[above], generator)
        return Phases(positive, negative, tuple(hidden))

    def state_dict(self) -> State:
        """Return the chains of every machine."""
        return {
            f"{i}.{name}": value for i, member in enumerate(self.members) for name, value in member.state_dict().items()
        }

    def load_state_dict(self, state: State) -> None:
        """Take up the chains again."""
        n = 1 + max((int(name.split(".", 1)[0]) for name in state), default=len(self.members) - 1)
        self.members = self.members or [copy.deepcopy(self.objective) for _ in range(n)]
        for i, member in enumerate(self.members):
            member.load_state_dict(_part(state, i))

    def _next(self, dbn: DBN, i: int, v: Tensor, h: Tensor | None, generator: torch.Generator | None) -> Tensor:
        return dbn.pass_up(i, dbn.draw_hidden(i, v, generator=generator) if h is None else h)

    def _weight(self, i: int) -> float:
        return 1.0 if self.weights is None else self.weights[i]

    def _network(self, model: nn.Module) -> DBN:
        if not isinstance(model, DBN):
            raise TypeError(f"SummedLayers trains a DBN. Got {type(model).__name__}. Use {self.objective!r} itself.")
        if self.weights is not None and len(self.weights) != len(model):
            raise ValueError(f"`weights` must have one value for each of {len(model)} machines. Got {self.weights}.")
        while len(self.members) < len(model):
            self.members.append(copy.deepcopy(self.objective))
        return model


def layer_phases(phases: Phases, i: int) -> Phases:
    """Return the two phases of machine i from those that `SummedLayers` gives."""
    hidden = tuple(name.removeprefix(f"{i}.") for name in phases.hidden if name.startswith(f"{i}."))
    return Phases(_part(phases.positive, i), _part(phases.negative, i), hidden)


def _part(state: State, i: int) -> State:
    return {name.removeprefix(f"{i}."): value for name, value in state.items() if name.startswith(f"{i}.")}
