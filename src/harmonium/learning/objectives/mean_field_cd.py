"""Contrastive divergence by means: the loss of Hwang et al. 2020."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from harmonium.learning.objectives.base import Case
from harmonium.learning.objectives.contrastive import Contrastive
from harmonium.models import RBM, BoltzmannMachine
from harmonium.types import EnergyModel, Filled, State


@dataclass
class MeanFieldCD(Contrastive):
    """`F(v) - F(v')` with v' the mean-field reconstruction `E[v'] = f(a + f(b + vW)Wᵀ)` (eq. 4 and 6 of Hwang et al.).

    The paper maximizes `F(v') - F(v)`: the same thing. v' is held constant. With `sample_hidden` the hidden layer is
    drawn and only the visible one is at its mean, as Hinton's guide (2012, section 3) advises; with neither a mean
    (`CD`) the gradient is that of contrastive divergence proper. `n_steps` rounds down and up are made.

    >>> rbm = RBM(Bernoulli(6), Bernoulli(3))
    >>> MeanFieldCD().loss(rbm, torch.ones(4, 6)).shape
    torch.Size([])
    """

    from_data: ClassVar[bool] = True

    n_steps: int = 1
    sample_hidden: bool = False

    def __post_init__(self) -> None:
        if self.n_steps < 1:
            raise ValueError(f"`n_steps` must be at least 1. Got {self.n_steps}. The paper uses 1.")

    @classmethod
    def examples(cls) -> list[Case]:
        """Return none: a reconstruction by means is no sample, and the loss does not rest at the truth."""
        return []

    def check(self, model: nn.Module) -> None:
        """Raise unless the model is an RBM."""
        _rbm(model)

    def divides(self, model: nn.Module) -> bool:
        """Return True: each row is rebuilt by itself."""
        return type(self) is MeanFieldCD

    def draw_negatives(self, model: EnergyModel, observed: State, *, generator: torch.Generator | None = None) -> State:
        """Return the reconstructions v'."""
        rbm = _rbm(model)
        layer = rbm.data_layer
        state = self._rebuilt(rbm, rbm.fill({layer: observed[layer]}).fields, generator)
        return {layer: state[layer]}

    def _negative_phase(
        self, model: BoltzmannMachine, positive: Filled, share: Tensor | float, generator: torch.Generator | None
    ) -> State:
        rbm = _rbm(model)
        negative = self._rebuilt(rbm, positive.fields, generator)
        rbm.add_gradient(negative, -share, {rbm.data_layer: negative[rbm.data_layer]})
        return negative

    def _rebuilt(self, rbm: RBM, fields: State, generator: torch.Generator | None) -> State:
        """Return v' and the means above it, from the field on the hidden layer."""
        below, above = rbm.layers
        field = fields[above]
        for _ in range(self.n_steps):
            h = rbm.hidden.sample(field, generator=generator) if self.sample_hidden else rbm.hidden.mean(field)
            v = rbm.mean(below, {above: h})
            field = rbm.field(above, {below: v})
        return {below: v, above: rbm.hidden.mean(field)}


def _rbm(model: object) -> RBM:
    if not isinstance(model, RBM):
        raise TypeError(f"MeanFieldCD needs an RBM. Got {type(model).__name__}. Use CD, or SummedLayers for a DBN.")
    return model
