"""Learn to classify and to generate by one weight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn

from harmonium import workers
from harmonium.learning.objectives.base import Case, Objective, Phases, add_scaled
from harmonium.learning.objectives.cd import CD
from harmonium.learning.objectives.contrastive import Contrastive, draw_exactly, small_machine
from harmonium.models import BoltzmannMachine
from harmonium.models.graph import MAX_ENUMERATED
from harmonium.models.summation import add_counted_gradient, count
from harmonium.types import State, as_state, without_gradient


@dataclass
class Hybrid(Objective):
    """`L = (1 - w) L_disc + w L_gen` with `L_disc = -log p(y | x) = F(x, y) - F(x)` and `L_gen = -log p(x, y)`.

    w is `generation_weight`: 0 makes a classifier, 1 a joint density, a little of it a classifier that the density
    keeps from overfitting (Larochelle and Bengio 2008, eq. 8, where α = w/(1 - w)). Rows without a label have no
    L_disc, and `-log p(x)` for L_gen: semi-supervised learning. L_disc is the mean over the rows that have one. Its
    gradient is `Σ_c (δ_yc - p(c | x)) ∂E(x, c)`, exact and in closed form; that of L_gen is what `generative` makes
    of it. y is the layer called `layer`, of any machine in which it can be counted.

    >>> Hybrid(generation_weight=0.0)    # a classifier
    Hybrid(generation_weight=0.0, generative=CD(...), layer='label')
    """

    generation_weight: float = 0.01
    generative: Contrastive = field(default_factory=CD)
    layer: str = "label"
    metrics: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.generation_weight <= 1:
            raise ValueError(
                f"`generation_weight` must lie in [0, 1]. Got {self.generation_weight}. 0 classifies, 1 generates."
            )

    @classmethod
    def examples(cls) -> list[Case]:
        """Return a small machine and its own law, all layers observed but none the label: it is the upper one."""
        machine = small_machine()
        draw = partial(draw_exactly, machine)
        return [Case(lambda *, generator: cls(0.3, layer="hidden"), machine, draw)]

    def check(self, model: nn.Module) -> None:
        """Raise unless the model has such a layer, and it can be counted."""
        if not isinstance(model, BoltzmannMachine) or self.layer not in model.layers:
            raise TypeError(
                f"Hybrid needs a machine with a layer {self.layer!r}, as ClassRBM has it. Got {type(model).__name__}."
            )
        n = model.layer(self.layer).n_configurations()
        if n is None or n > MAX_ENUMERATED:
            raise TypeError(
                f"Hybrid goes through all values of layer {self.layer!r}, and {model.layer(self.layer)!r} has more "
                f"than {MAX_ENUMERATED}. Classify into fewer classes."
            )

    def divides(self, model: nn.Module) -> bool:
        """Return whether the generative part can be divided, and keeps no chains; a classifier alone is not."""
        rule = self.generative
        return type(self) is Hybrid and self.generation_weight > 0 and rule.chain_axis() is None and rule.divides(model)

    def loss(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return L of a batch, differentiable in the parameters."""
        machine, state = self._machine(model), self._machine(model).state(batch)
        total = state[machine.data_layer].new_zeros(())
        if self.generation_weight:
            total = total + self.generation_weight * self.generative.loss(model, state, generator=generator)
        labeled = self._labeled(state)
        n = self._n_labeled(labeled)
        if labeled is not None:
            total = total + (1 - self.generation_weight) * self._classification(machine, labeled, n)
        return total

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
        """Add the gradient of L to the gradients: in closed form, unless units of the machine learn too (σ)."""
        if weight is not None:
            raise ValueError("Hybrid has no weights of rows. Leave `weights` out.")
        machine = self._machine(model)
        state = machine.state(as_state(batch, machine.data_layer))
        phases = None
        if self.generation_weight:
            phases = add_scaled(self.generation_weight, self.generative, model, state, index=index, generator=generator)
        labeled = self._labeled(state)
        n = self._n_labeled(labeled)
        if labeled is None:
            if n:  # other workers have rows with labels
                self.metrics = {"classification_loss": 0.0}
            return phases if self.generation_weight else self._without_labels(machine, state)
        y = labeled.pop(self.layer)
        machine.graph.summation(tuple(name for name in machine.layers if name not in (*labeled, self.layer)))
        share, full = count(machine, labeled, (self.layer,))
        is_y = (full[self.layer] == y).flatten(2).all(-1).to(share)
        probability = (is_y * share).sum(0).clamp_min(torch.finfo(share.dtype).tiny)
        self.metrics = {"classification_loss": -probability.log().sum().item() / n}
        factor = 1 - self.generation_weight
        if any(p.requires_grad for name in machine.layers for p in machine.layer(name).parameters()):
            with torch.enable_grad():
                (factor * self._classification(machine, labeled | {self.layer: y}, n)).backward()
        else:
            add_counted_gradient(machine, (self.layer,), full, (is_y - share).mul_(factor / n))
        if self.generation_weight:
            return phases
        return Phases(_at(machine, full, is_y), _at(machine, full, share), self._hidden(machine))

    def _machine(self, model: nn.Module) -> BoltzmannMachine:
        self.check(model)
        return model  # type: ignore[return-value]

    def _labeled(self, state: State) -> State | None:
        """Return the rows that have a label, None without any or where L_disc has no weight."""
        if self.layer not in state or self.generation_weight == 1:
            return None
        known = ~state[self.layer].isnan().flatten(1).any(1)
        if bool(known.all()):
            return dict(state)
        return {name: value[known] for name, value in state.items()} if bool(known.any()) else None

    def _n_labeled(self, labeled: State | None) -> float:
        """Return how many rows have a label that counts, of all workers."""
        here = 0 if labeled is None else len(labeled[self.layer])
        return workers.total(torch.tensor(float(here))).item() if self.generation_weight < 1 else 0.0

    def _without_labels(self, machine: BoltzmannMachine, state: State) -> Phases:
        """Return phases that differ in nothing: rows without labels teach a classifier nothing."""
        filled = machine.fill({name: value for name, value in state.items() if name != self.layer}).state
        return Phases(filled, filled, self._hidden(machine))

    def _hidden(self, machine: BoltzmannMachine) -> tuple[str, ...]:
        return tuple(name for name in machine.layers if name not in (machine.data_layer, self.layer))

    def _classification(self, machine: BoltzmannMachine, labeled: State, n: float) -> Tensor:
        """Return the sum of `F(x, y) - F(x)`, over n."""
        rest = {name: value for name, value in labeled.items() if name != self.layer}
        return (machine.energy(labeled) - machine.energy(rest)).sum() / n

    def measured(self) -> dict[str, float]:
        """Return L_disc of the last update that had labels."""
        return self.metrics

    def state_dict(self) -> State:
        """Return what the generative part carries."""
        return self.generative.state_dict()

    def load_state_dict(self, state: State) -> None:
        """Give it back."""
        self.generative.load_state_dict(state)


def _at(machine: BoltzmannMachine, full: State, share: Tensor) -> State:
    """Return the state at the configuration with the largest share in each row: that of the label, or of the guess."""
    chosen, rows = share.argmax(0), torch.arange(share.shape[1], device=share.device)
    at: State = {}
    for name, value in full.items():
        shape = machine.layer(name).shape
        depends = len(machine.layer(name).batch_shape(value)) == share.ndim
        at[name] = value.expand(*share.shape, *shape)[chosen, rows] if depends else value
    return at
