"""The likelihood itself, where it can be counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from harmonium.learning.objectives.base import Case, Objective, Phases, data_alone
from harmonium.models import RBM
from harmonium.models.observed import counted_log_z, draw_observed, hidden_configurations, observed_energy
from harmonium.types import State
from harmonium.units import Bernoulli, Categorical, Gaussian, Mixed


@dataclass(frozen=True)
class ObservedLikelihood(Objective):
    """`-log p(x_o) = F(x_o) + log Z`, mean over the batch: exact, by going through the hidden layer of an RBM.

    For hidden layers of up to 2¹⁶ configurations: 16 binary units, a category, or both. No chains, so none that fail to
    mix. Values that a row does not hold (NaN) are summed out in closed form: every row counts with what is known of it.

    >>> rbm = RBM(Bernoulli(3), Bernoulli(2))
    >>> ObservedLikelihood().loss(rbm, torch.tensor([[1.0, torch.nan, 0.0]])).shape
    torch.Size([])
    """

    weighs_rows: ClassVar[bool] = True
    sums_out_holes: ClassVar[bool] = True

    @classmethod
    def examples(cls) -> list[Case]:
        """Return a small RBM and data of its law."""
        generator = torch.Generator().manual_seed(5)
        hidden = Mixed(Categorical(1, 3), Bernoulli(2))
        model = RBM(Mixed(Bernoulli(2), Gaussian(2), Categorical(1, 3)), hidden, generator=generator).double()

        def draw(n: int, *, generator: torch.Generator | None = None) -> State:
            empty = torch.full((n, *model.visible.shape), torch.nan, dtype=torch.float64)
            return {"visible": draw_observed(model, empty, generator=generator)}

        return [Case(lambda *, generator: cls(), model, draw)]

    def check(self, model: nn.Module) -> None:
        """Raise unless the model is an RBM whose hidden layer can be gone through."""
        if not isinstance(model, RBM):
            raise TypeError(
                f"ObservedLikelihood counts the hidden layer of an RBM. Got {type(model).__name__}. Use CD()."
            )
        hidden_configurations(model)

    def loss(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the mean of `F(x_o) + log Z`."""
        rbm: RBM = model  # type: ignore[assignment]
        return observed_energy(rbm, data_alone(model, batch, self)).mean() + counted_log_z(rbm)

    def accumulate_grad(
        self,
        model: nn.Module,
        batch: Tensor | Mapping[str, Tensor],
        *,
        weight: Tensor | None = None,
        index: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Phases | None:
        """Add the gradient of the mean, weighted where rows have weights, to the gradients."""
        if weight is None:
            return super().accumulate_grad(model, batch, generator=generator)
        rbm: RBM = model  # type: ignore[assignment]
        if bool(weight.any()):
            with torch.enable_grad():
                free = observed_energy(rbm, data_alone(model, batch, self))
                ((weight / weight.sum() * free).sum() + counted_log_z(rbm)).backward()
        return None
