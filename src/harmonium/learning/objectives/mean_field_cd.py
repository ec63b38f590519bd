"""Contrastive divergence by means: the loss of Hwang et al. 2020."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from harmonium.learning.objectives.contrastive import Contrastive
from harmonium.models import RBM, BoltzmannMachine
from harmonium.types import EnergyModel, State


@dataclass
class MeanFieldCD(Contrastive):
    """`F(v) - F(v')` with v' the mean-field reconstruction `E[v'] = f(a + f(b + vW)Wᵀ)` (eq. 4 and 6 of Hwang et al.).

    The paper maximizes `F(v') - F(v)`: the same thing. v' is held constant. With `sample_hidden` the hidden layer is
    drawn and only the visible one is at its mean, as Hinton's guide (2012, section 3) advises; with neither a mean
    (`CD`) the gradient is that of contrastive divergence proper. `n_steps` rounds down and up are made.

    >>> rbm = RBM(Bernoulli(6), Bernoulli(3))
    >>> MeanFieldCD()(rbm, torch.ones(4, 6)).shape
    torch.Size([])
    """

    from_data: ClassVar[bool] = True

    n_steps: int = 1
    sample_hidden: bool = False

    def __post_init__(self) -> None:
        if self.n_steps < 1:
            raise ValueError(f"`n_steps` must be at least 1. Got {self.n_steps}. The paper uses 1.")

    def negatives(self, model: EnergyModel, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Return the reconstructions v'."""
        rbm = _rbm(model)
        field = rbm.field("hidden", {"visible": x})
        return self._negative_phase(rbm, {"visible": x}, {"hidden": field}, generator)["visible"]

    def _negative_phase(
        self, model: BoltzmannMachine, positive: State, fields: State, generator: torch.Generator | None
    ) -> State:
        rbm = _rbm(model)
        field = fields["hidden"]
        for _ in range(self.n_steps):
            h = rbm.hidden.sample(field, generator=generator) if self.sample_hidden else rbm.hidden.mean(field)
            v = rbm.mean("visible", {"hidden": h})
            field = rbm.field("hidden", {"visible": v})
        return {"visible": v, "hidden": rbm.hidden.mean(field)}


def _rbm(model: EnergyModel) -> RBM:
    if not isinstance(model, RBM):
        raise TypeError(f"MeanFieldCD needs an RBM. Got {type(model).__name__}. Use CD, or JointCD for a DBN.")
    return model
