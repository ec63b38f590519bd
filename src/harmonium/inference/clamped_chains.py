"""Hidden layers drawn by chains that hold the observed ones."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from harmonium.inference.base import Inference
from harmonium.models import BoltzmannMachine, Conditioned
from harmonium.samplers import Gibbs
from harmonium.types import Filled, State


@dataclass
class ClampedChains(Inference):
    """Draws of `p(h | v)` after `n_steps` Gibbs steps in which the observed layers stand still.

    Fresh chains start at every update under the biases; `persistent` ones go on for each row of the data from where
    they were when the row was last used, so that one step an update may do (as Hinton and Sejnowski 1986 clamp their
    units). The last block that is drawn stands at its means given the others.

    >>> ClampedChains(n_steps=10)
    ClampedChains(n_steps=10, persistent=False)
    """

    n_steps: int = 5
    persistent: bool = False
    rows: State = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.n_steps < 1:
            raise ValueError(f"`n_steps` must be at least 1. Got {self.n_steps}.")

    @torch.no_grad()
    def accumulate_grad(
        self,
        machine: BoltzmannMachine,
        observed: State,
        weight: Tensor | float,
        *,
        index: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Filled:
        """Add the gradient of the energy at the drawn states."""
        if self.persistent and index is None:
            raise ValueError(
                "Persistent clamped chains belong to rows of the data, which a DataLoader does not number. "
                "Give the data as a tensor or a mapping, or use persistent=False."
            )
        if all(name in observed for name in machine.layers):
            machine.add_gradient(observed, weight)
            return Filled(observed, {})
        law = Conditioned(machine, observed)
        state = self._start(law, index, len(next(iter(observed.values()))), generator)
        fields: State = {}
        for _ in range(self.n_steps):
            state, info = Gibbs().step(law, state, generator=generator)
            fields = info["fields"]
        if self.persistent and index is not None:
            for name, value in state.items():
                self.rows[name][index] = value
        means = {name: machine.layer(name).mean(value) for name, value in fields.items()}
        full = observed | state | means
        machine.add_gradient(full, weight, {name: value for name, value in full.items() if name not in means})
        return Filled(full, fields)

    def _start(self, law: Conditioned, index: Tensor | None, n: int, generator: torch.Generator | None) -> State:
        """Return where the chains start: those of rows that were used before where they were."""
        fresh = law.initial(n, generator=generator)
        if not self.persistent or index is None:
            return fresh
        state = {}
        for name, value in fresh.items():
            self._grow(name, int(index.max()) + 1, value)
            old = self.rows[name][index].to(value)
            state[name] = torch.where(old.isnan(), value, old)
        return state

    def _grow(self, name: str, n: int, like: Tensor) -> None:
        """Make room for `n` rows of a layer; NaN stands for a chain that has not started."""
        kept = self.rows.get(name, like[:0])
        if len(kept) < n:
            self.rows[name] = torch.cat([kept, like.new_full((n - len(kept), *like.shape[1:]), torch.nan)])

    def state_dict(self) -> State:
        """Return where the chain of each row is."""
        return dict(self.rows)

    def load_state_dict(self, state: State) -> None:
        """Take the chains up again."""
        self.rows = {name: value.clone() for name, value in state.items()}
