"""How well held-out ratings are predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from harmonium.learning.history import Record
from harmonium.learning.monitors.base import Monitor
from harmonium.models import RatingRBM

if TYPE_CHECKING:
    from harmonium.learning.training import Training


class RatingError(Monitor):
    """`validation_rmse`: the root of the mean squared error of the expected rating, of `asked` ratings given `known`.

    Both are tables users × items with NaN where there is none.
    """

    def __init__(self, known: Tensor, asked: Tensor) -> None:
        self.known, self.asked = known, asked

    @torch.no_grad()
    def __call__(self, training: Training) -> Record:
        """Return the error."""
        if not isinstance(training.model, RatingRBM):
            return {}
        users, items = (~self.asked.isnan()).nonzero(as_tuple=True)
        error = training.model.predict(self.known, users, items) - self.asked[users, items]
        return {"validation_rmse": error.square().mean().sqrt().item()}
