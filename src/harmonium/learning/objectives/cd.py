"""Contrastive divergence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor, nn

from harmonium.inference import ClosedForm, Inference
from harmonium.learning.objectives.base import Phases
from harmonium.learning.objectives.contrastive import (
    Contrastive,
    can_divide,
    contrasted,
    drop_last_block,
    law_of,
    sweep,
)
from harmonium.learning.objectives.dense_pair import DensePair
from harmonium.learning.objectives.rounded_pair import RoundedPair
from harmonium.models import BoltzmannMachine
from harmonium.models.layers import data_layer
from harmonium.samplers import Gibbs, Sampler
from harmonium.types import EnergyModel, Filled, State


@dataclass
class CD(Contrastive):
    """Contrastive divergence: chains of `n_steps` steps that start at the data (Hinton 2002; eq. 6.43).

    With `rounded` an RBM with a dense coupling, in single precision, has its weights rounded to 16 bits in every
    update; layers of whole numbers meet them in products of bytes where the processor has instructions for these
    (`RoundedPair`). The weights that are learned stay floats.

    >>> CD(n_steps=1)
    CD(n_steps=1, sampler=None, inference=ClosedForm(), rounded=False)
    """

    from_data: ClassVar[bool] = True

    n_steps: int = 1
    sampler: Sampler | None = None
    inference: Inference = field(default_factory=ClosedForm)
    rounded: bool = False

    def __post_init__(self) -> None:
        if self.n_steps < 1:
            raise ValueError(f"`n_steps` must be at least 1. Got {self.n_steps}.")
        if self.rounded and self.sampler is not None:
            raise ValueError(f"`rounded` is for Gibbs steps, without a `sampler`. Got {self.sampler!r}.")

    def divides(self, model: nn.Module) -> bool:
        """Return whether its chains can be divided: those of a class of your own are not."""
        sampler = self.sampler or Gibbs()
        return type(self) is CD and not self.rounded and can_divide(model, self.inference) and sampler.chain_axis() == 0

    def draw_negatives(self, model: EnergyModel, observed: State, *, generator: torch.Generator | None = None) -> State:
        """Return the ends of chains that start at the observed layers."""
        self._refuse_rounded(model)
        sampler = self.sampler or Gibbs()
        if not isinstance(model, BoltzmannMachine):
            return self._run(sampler, model, {data_layer(model): observed[data_layer(model)]}, generator)
        law, conditions, _ = law_of(model, observed)
        start = {name: value for name, value in observed.items() if name not in conditions}
        if any(bool(value.isnan().any()) for value in start.values()):  # layers that only some rows hold
            start = {name: value for name, value in start.items() if not bool(value.isnan().any())}
        if not sampler.whole and law.data_layer in start:
            start = {law.data_layer: start[law.data_layer]}
        return drop_last_block(law, self._run(sampler, law, start, generator)) | conditions

    def _start(
        self, model: BoltzmannMachine, law: BoltzmannMachine, positive: Filled, generator: torch.Generator | None
    ) -> State:
        """Return the data with its hidden layers drawn given it."""
        hidden = tuple(name for name in law.layers if name in positive.fields)
        if self.inference.exact and not model.graph.summation(hidden).is_closed:
            observed = {name: value for name, value in positive.state.items() if name not in positive.fields}
            drawn = model.draw_missing(observed, generator=generator)
            return {name: drawn[name] for name in law.layers}
        return {name: positive.state[name] for name in law.layers} | {
            name: model.layer(name).sample_given_mean(known, positive.state[name], generator=generator)
            for name, known in positive.fields.items()
        }

    def _refuse_rounded(self, model: object) -> None:
        if self.rounded:
            raise ValueError(
                "CD(rounded=True) learns an RBM with a dense coupling, of units without parameters of their own, in "
                "single precision on the CPU, from whole rows without weights. Got "
                f"{type(model).__name__}, or something else that is not so. Leave `rounded` out."
            )

    def _run(self, sampler: Sampler, law: EnergyModel, start: State, generator: torch.Generator | None) -> State:
        state = sampler.init(law, start, generator=generator)
        for _ in range(self.n_steps):
            state, _info = sampler.step(law, state, generator=generator)
        return sampler.layers(law, state)

    def _straight_phases(self, pair: DensePair, batch: State, generator: torch.Generator | None) -> Phases | None:
        if type(self) is not CD or self.sampler is not None:  # a class of your own may draw otherwise
            return None
        if self.rounded:
            if not RoundedPair.suits(pair):
                return None
            pair = RoundedPair.like(pair)
        positive, known = pair.above(batch[pair.names[0]])
        pair.begin(positive)
        h = pair.draw_hidden(positive, known, generator=generator)
        negative, _ = pair.chain(h, self.n_steps, generator=generator)
        return contrasted(pair, positive, negative)

    def _negative_phase(
        self, model: BoltzmannMachine, positive: Filled, share: Tensor | float, generator: torch.Generator | None
    ) -> State:
        self._refuse_rounded(model)
        if self.sampler is not None:
            observed = {name: value for name, value in positive.state.items() if name not in positive.fields}
            drawn = self.draw_negatives(model, observed, generator=generator)
            return model.accumulate_grad(drawn, -share).state
        law, conditions, _ = law_of(model, positive.state)
        start = self._start(model, law, positive, generator)
        _, negative, drawn = sweep(law, start, self.n_steps, carry=False, generator=generator)
        model.add_marginal_gradient(negative | conditions, -share, drawn | conditions)
        return negative | conditions
