"""Rules that compare a sample with its neighbors, one unit changed: no chains, no Z."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from harmonium import workers
from harmonium.draws import draw_integers
from harmonium.learning.objectives.base import Case, Objective, Phases
from harmonium.learning.objectives.contrastive import draw_exactly, rows_by_layers, small_machine
from harmonium.models import BoltzmannMachine
from harmonium.types import State, as_state
from harmonium.units import Units


@dataclass(frozen=True)
class UnitByUnit(Objective):
    """A loss `Σ_i ℓ(F_i0, F_i1, …)` over the observed units i, with F_is the free energy of x with unit i in state s.

    Hidden layers are summed out; layers that only some rows hold are left out of the others; conditions stay as they
    are. `n_units` units of each layer, drawn anew for each sample, stand in for all of them: an unbiased estimate, and
    the stochastic form of the rule. Without it an update costs as many free energies as there are units.
    """

    weighs_rows: ClassVar[bool] = True

    n_units: int | None = None

    def __post_init__(self) -> None:
        if self.n_units is not None and self.n_units < 1:
            raise ValueError(f"`n_units` must be at least 1, or None for all units. Got {self.n_units}.")

    @classmethod
    def examples(cls) -> list[Case]:
        """Return a small machine and its own law, for all units and for two drawn ones."""
        machine = small_machine()
        draw = partial(draw_exactly, machine, layers=(machine.data_layer,))
        return [Case(lambda *, generator: cls(), machine, draw), Case(lambda *, generator: cls(2), machine, draw)]

    @abstractmethod
    def unit_loss(self, energies: Tensor) -> Tensor:
        """Return ℓ of free energies `(n_states, …)` of the states of one unit; the first state is that of the data."""

    def check(self, model: nn.Module) -> None:
        """Raise unless the model is a machine whose data have finitely many states."""
        machine = _machine(model, self)
        _states(machine.layer(machine.data_layer), machine.data_layer, self)

    def divides(self, model: nn.Module) -> bool:
        """Return whether the rule is one of Harmonium's that looks at each row by itself, at all of its units."""
        return type(self).__module__.startswith("harmonium.") and self.n_units is None

    def losses(self, model: BoltzmannMachine, observed: State, *, generator: torch.Generator | None = None) -> Tensor:
        """Return the loss of each sample of a state whose layers all rows hold, `(batch,)`."""
        here = model.energy(observed)
        total = torch.zeros_like(here)
        for name in (name for name in observed if name in model.layers):
            n = math.prod(model.layer(name).sites)
            if self.n_units is None:
                sites = torch.arange(n, device=here.device)[:, None].expand(n, len(here))
            else:
                sites = draw_integers(n, (self.n_units, len(here)), generator=generator, device=here.device)
            others = _neighbors(model.layer(name), observed[name], sites, name, self)
            energies = torch.cat([here.expand(1, *sites.shape), model.energy(observed | {name: others})])
            total = total + self.unit_loss(energies).sum(0) * (n / len(sites))
        return total

    def loss(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the mean loss of a batch, differentiable in the parameters."""
        return self._total(model, batch, None, generator)

    def accumulate_grad(
        self,
        model: nn.Module,
        batch: Tensor | Mapping[str, Tensor],
        *,
        weight: Tensor | None = None,
        index: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Phases | None:
        """Add the gradient of the mean loss, by autograd; `weight` has one value a sample."""
        if weight is None or bool(workers.total(weight)):
            with torch.enable_grad():
                self._total(model, batch, weight, generator).backward()
        return None

    def _total(
        self,
        model: nn.Module,
        batch: Tensor | Mapping[str, Tensor],
        weight: Tensor | None,
        generator: torch.Generator | None,
    ) -> Tensor:
        machine = _machine(model, self)
        observed = machine.state(as_state(batch, machine.data_layer))
        total, mass = machine.zeros((), observed), machine.zeros((), observed)
        for rows, part in rows_by_layers(machine, observed):
            losses = self.losses(machine, part, generator=generator)
            share = torch.ones_like(losses) if weight is None else weight[rows]
            total, mass = total + (share * losses).sum(), mass + share.sum()
        return total / workers.total(mass)


def _neighbors(units: Units, x: Tensor, sites: Tensor, name: str, objective: Objective) -> Tensor:
    """Return x with one unit in each of its other states, `(n_states - 1, n_sites, batch, *shape)`.

    `sites`, `(n_sites, batch)`, numbers the units that are changed.
    """
    states = _states(units, name, objective).to(x)
    apart = units.split_sites(x).flatten(1, len(units.sites)) if len(units.sites) > 1 else units.split_sites(x)
    row = torch.arange(len(x), device=x.device).expand_as(sites)
    table = states.reshape(len(states), -1)
    same = (apart[row, sites].reshape(*sites.shape, 1, -1) == table).all(-1)
    if not bool(same.any(-1).all()):
        raise ValueError(
            f"{type(objective).__name__} needs values that the units of layer {name!r} can take, {units!r}. The batch "
            "holds others, such as means. Binarize or round them first, or learn by CD or PCD."
        )
    now = same.to(torch.uint8).argmax(-1)
    jumps = torch.arange(1, len(states), device=x.device)[:, None, None]
    new = apart.expand(len(jumps), *sites.shape[:1], *apart.shape).clone()
    first = torch.arange(len(jumps), device=x.device)[:, None, None]
    second = torch.arange(len(sites), device=x.device)[None, :, None]
    new[first, second, row, sites] = states[(now + jumps) % len(states)]
    return units.join_sites(new.unflatten(3, units.sites))


def _states(units: Units, name: str, objective: Objective) -> Tensor:
    states = units.states()
    if states is None:
        other = "SlicedScoreMatching, CD or PCD" if units.support == "real" else "CD or PCD"
        raise TypeError(
            f"{type(objective).__name__} goes through the states of each unit, and {units!r} of layer {name!r} has no "
            f"finite list of them. Use {other}."
        )
    return states


def _machine(model: object, objective: Objective) -> BoltzmannMachine:
    if not isinstance(model, BoltzmannMachine):
        raise TypeError(
            f"{type(objective).__name__} needs a Boltzmann machine, whose units it changes one by one. Got "
            f"{type(model).__name__}. Use score matching or NoiseContrastive."
        )
    return model
