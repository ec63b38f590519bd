"""Persistent contrastive divergence."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from harmonium import workers
from harmonium.inference import ClosedForm, Inference
from harmonium.learning.objectives.base import Case, Phases
from harmonium.learning.objectives.contrastive import (
    Contrastive,
    can_divide,
    contrasted,
    draw_exactly,
    drop_last_block,
    law_of,
    small_machine,
    sweep,
)
from harmonium.learning.objectives.dense_pair import DensePair
from harmonium.models import BoltzmannMachine, Tempered
from harmonium.models.layers import data_layer
from harmonium.samplers import Gibbs, ParallelTempering, Sampler
from harmonium.samplers.sample import starting_points
from harmonium.types import EnergyModel, Filled, State


@dataclass
class PCD(Contrastive):
    """Persistent contrastive divergence: `n_chains` chains that go on from update to update (Tieleman 2008).

    They start at the model's units under their biases. Another `sampler` than Gibbs may drive them. Where a machine has
    conditions, chain i goes on under those of row i of the batch at hand.

    >>> PCD(n_chains=100).n_steps
    1
    """

    persistent: ClassVar[bool] = True

    n_chains: int = 100
    n_steps: int = 1
    sampler: Sampler | None = None
    inference: Inference = field(default_factory=ClosedForm)
    chains: State | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, value in (("n_chains", self.n_chains), ("n_steps", self.n_steps)):
            if value < 1:
                raise ValueError(f"`{name}` must be at least 1. Got {value}.")

    @classmethod
    def examples(cls) -> list[Case]:
        """Return a small machine, its own law, and chains that follow it."""
        machine = small_machine()

        def objective(*, generator: torch.Generator | None = None) -> PCD:
            made = cls(n_chains=64)
            sampler = made.sampler
            if isinstance(sampler, ParallelTempering):
                laws = [Tempered(machine, beta, sampler.reference) for beta in sampler.betas]
                rungs = [draw_exactly(law, made.n_chains, generator=generator) for law in laws]
                made.chains = {name: torch.stack([rung[name] for rung in rungs]) for name in machine.layers}
            else:
                made.chains = draw_exactly(machine, made.n_chains, generator=generator)
            return made

        return [Case(objective, machine, partial(draw_exactly, machine, layers=(machine.data_layer,)))]

    def divides(self, model: nn.Module) -> bool:
        """Return whether its chains can be divided: those of a class of your own are not, unless it says so."""
        return type(self) is PCD and can_divide(model, self.inference) and self.chain_axis() is not None

    def chain_axis(self) -> int | None:
        """Return the axis of the chains: behind the temperatures, if there are several."""
        return (self.sampler or Gibbs()).chain_axis()

    def among_negatives(self) -> AbstractContextManager[int]:
        """Return the context in which rows are chains."""
        return workers.of(self.n_chains)

    def draw_negatives(self, model: EnergyModel, observed: State, *, generator: torch.Generator | None = None) -> State:
        """Move the chains and return where they are."""
        sampler = self.sampler or Gibbs()
        if not isinstance(model, BoltzmannMachine):
            return self._move(sampler, model, generator)
        law, conditions, _ = law_of(model, observed, self.n_chains)
        return drop_last_block(law, self._move(sampler, law, generator)) | conditions

    def _move(self, sampler: Sampler, law: EnergyModel, generator: torch.Generator | None) -> State:
        with workers.of(self.n_chains):
            state = self.started(law, generator=generator)
            if not sampler.whole:  # what it carries beside the data, energies and slopes, is of the last parameters
                state = sampler.init(law, state[data_layer(law)], generator=generator)
            for _ in range(self.n_steps):
                state, _info = sampler.step(law, state, generator=generator)
        self.chains = state
        return sampler.layers(law, state)

    def _straight_phases(self, pair: DensePair, batch: State, generator: torch.Generator | None) -> Phases | None:
        if type(self) is not PCD or self.sampler is not None or self.chains is None:
            return None
        v, h = pair.names
        positive, _ = pair.above(batch[v])
        pair.begin(positive)
        with workers.of(self.n_chains):
            negative, known = pair.chain(self.chains[h], self.n_steps, generator=generator)
            self.chains = {v: negative.v, h: pair.draw_hidden(negative, known, generator=generator)}
        return contrasted(pair, positive, negative)

    def _negative_phase(
        self, model: BoltzmannMachine, positive: Filled, share: Tensor | float, generator: torch.Generator | None
    ) -> State:
        law, conditions, rows = law_of(model, positive.state, self.n_chains)
        weight = self._weight(share, rows if conditions else None)
        if self.sampler is not None:
            drawn = drop_last_block(law, self._move(self.sampler, law, generator)) | conditions
            return model.accumulate_grad(drawn, -weight).state
        with workers.of(self.n_chains):
            start = self.started(law, generator=generator)
            self.chains, negative, drawn = sweep(law, start, self.n_steps, carry=True, generator=generator)
        model.add_marginal_gradient(negative | conditions, -weight, drawn | conditions)
        return negative | conditions

    def _weight(self, share: Tensor | float, rows: Tensor | None) -> Tensor | float:
        """Return what each chain counts: where rows have weights, that of the row whose conditions it has."""
        if rows is None or not isinstance(share, Tensor):
            return 1.0 / self.n_chains
        part = workers.current()
        share = share if part is None or part.repeated else workers.gather(share)
        return share[rows] / workers.total(share[rows])

    def started(self, law: EnergyModel, *, generator: torch.Generator | None = None) -> State:
        """Return where the chains are; they start now if they have not."""
        if self.chains is None:
            with workers.of(self.n_chains) as n:
                start = starting_points(law, n, generator=generator)
                self.chains = (self.sampler or Gibbs()).init(law, start, generator=generator)
        return self.chains

    def state_dict(self) -> State:
        """Return the chains, and what the inference carries."""
        return dict(self.chains or {}) | super().state_dict()

    def load_state_dict(self, state: State) -> None:
        """Take up the chains again."""
        super().load_state_dict(state)
        self.chains = {name: value for name, value in state.items() if not name.startswith("inference.")} or None
