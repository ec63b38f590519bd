"""Each rating from the others of its row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from harmonium import workers
from harmonium.draws import draw_normal
from harmonium.learning.objectives.base import Case, Objective
from harmonium.learning.objectives.contrastive import draw_exactly
from harmonium.models import Conditioned, RatingRBM
from harmonium.types import State
from harmonium.units import Gaussian


@dataclass(frozen=True)
class LeaveOneOut(Objective):
    """`-log p(v_i | the other ratings of its row)`, the mean over all ratings of the batch.

    It is Besag's pseudo-likelihood of the ratings that are there, in closed form: no chain is run, and what is learned
    is what is asked for when a rating is predicted.

    >>> model = RatingRBM(1, 3, hidden=Gaussian(2), rows="users")
    >>> LeaveOneOut().loss(model, model.observed(torch.tensor([[5.0, float("nan"), 1.0]]))).item()   # about log 5
    1.6...
    """

    @classmethod
    def examples(cls) -> list[Case]:
        """Return a small machine and its own law, two of three items being rated."""
        generator = torch.Generator().manual_seed(0)
        model = RatingRBM(1, 3, (1, 2), Gaussian(2), rows="users", generator=generator).double()
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.data = draw_normal(parameter.data, generator=generator)
        given = model.observed(torch.tensor([[1.0, 1.0, torch.nan]], dtype=torch.float64))
        conditions = {name: given[name][0] for name in model.given}
        law = Conditioned(model, conditions)

        def draw(n: int, *, generator: torch.Generator) -> State:
            drawn = draw_exactly(law, n, layers=("ratings",), generator=generator)
            return drawn | {name: value.expand(n, 3) for name, value in conditions.items()}

        return [Case(lambda *, generator: cls(), model, draw)]

    def check(self, model: nn.Module) -> None:
        """Raise unless the model has ratings."""
        if not isinstance(model, RatingRBM):
            raise TypeError(
                f"LeaveOneOut learns ratings and needs a RatingRBM. Got {type(model).__name__}. PseudoLikelihood() is "
                "the same rule for other machines."
            )

    def divides(self, model: nn.Module) -> bool:
        """Return True: each row has its own ratings."""
        return type(self) is LeaveOneOut

    def loss(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the mean over the ratings, in nats."""
        self.check(model)
        machine: RatingRBM = model  # type: ignore[assignment]
        state = machine.state(batch)
        rows, columns = state["rated"].nonzero(as_tuple=True)
        log_p = machine.log_weights(state, rows, columns).log_softmax(-1)
        nats = -(log_p * state["ratings"][rows, columns]).sum(-1)
        return nats.sum() / workers.total(torch.ones_like(nats))
