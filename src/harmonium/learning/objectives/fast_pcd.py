"""Persistent chains driven by fast weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from harmonium.learning.objectives.base import Phases
from harmonium.learning.objectives.contrastive import law_of
from harmonium.learning.objectives.pcd import PCD
from harmonium.models import BoltzmannMachine
from harmonium.types import EnergyModel, Filled, State, without_gradient

_PREFIX = "fast."


@dataclass
class FastPCD(PCD):
    """Persistent chains that run under θ + θ_fast, and so leave what they just visited (Tieleman and Hinton 2009).

    With g the gradient of an update, `θ_fast ← decay · θ_fast - fast_rate · g`: the same step as that of θ, larger and
    soon forgotten. The contrast itself is that of θ. The chains follow another law than the model while θ_fast ≠ 0, so
    that the rule is as good as θ_fast is small. θ_fast belongs to couplings and biases, and moves in `accumulate_grad`,
    which `fit` calls.

    >>> FastPCD(n_chains=100).decay
    0.95
    """

    fast_rate: float = 0.05
    decay: float = 0.95
    fast: State = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.fast_rate > 0:
            raise ValueError(f"`fast_rate` must be positive. Got {self.fast_rate}. Without fast weights it is PCD.")
        if not 0 <= self.decay < 1:
            raise ValueError(f"`decay` must lie in [0, 1). Got {self.decay}. The paper uses 0.95.")

    @without_gradient
    def accumulate_grad(
        self,
        model: nn.Module,
        batch: Tensor | Mapping[str, Tensor],
        *,
        weight: Tensor | None = None,
        index: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Phases | None:
        """Add the gradient of the contrast, and move the fast weights by it."""
        before = {name: p.grad.clone() for name, p in _learning(model) if p.grad is not None}
        phases = super().accumulate_grad(model, batch, weight=weight, index=index, generator=generator)
        for name, p in _learning(model):
            if p.grad is not None:
                step = p.grad if name not in before else p.grad - before[name]
                self.fast.setdefault(name, torch.zeros_like(p)).mul_(self.decay).sub_(step, alpha=self.fast_rate)
        return phases

    def draw_negatives(self, model: EnergyModel, observed: State, *, generator: torch.Generator | None = None) -> State:
        """Move the chains under the fast weights and return where they are."""
        with self._faster(model):
            return super().draw_negatives(model, observed, generator=generator)

    def _negative_phase(
        self, model: BoltzmannMachine, positive: Filled, share: Tensor | float, generator: torch.Generator | None
    ) -> State:
        drawn = self.draw_negatives(model, positive.state, generator=generator)
        _, _, rows = law_of(model, positive.state, self.n_chains)
        weight = self._weight(share, rows if model.given else None)
        return model.accumulate_grad(drawn, -weight).state

    @contextmanager
    def _faster(self, model: object) -> Iterator[None]:
        """Let the parameters be θ + θ_fast within the block."""
        kept = [(p, p.detach().clone()) for name, p in _learning(model) if name in self.fast]
        with torch.no_grad():
            for name, p in _learning(model):
                if name in self.fast:
                    p.add_(self.fast[name])
            yield
            for p, slow in kept:
                p.copy_(slow)

    def state_dict(self) -> State:
        """Return the chains and the fast weights."""
        return super().state_dict() | {_PREFIX + name: value for name, value in self.fast.items()}

    def load_state_dict(self, state: State) -> None:
        """Take them up again."""
        self.fast = {name.removeprefix(_PREFIX): x.clone() for name, x in state.items() if name.startswith(_PREFIX)}
        super().load_state_dict({name: x for name, x in state.items() if not name.startswith(_PREFIX)})


def _learning(model: object) -> list[tuple[str, nn.Parameter]]:
    """Return the parameters that learn by their names: of a machine, those of its couplings."""
    module = model.couplings if isinstance(model, BoltzmannMachine) else model
    named = module.named_parameters() if isinstance(module, nn.Module) else ()
    return [(name, p) for name, p in named if p.requires_grad]
