"""Missing values: drawn from the model given the rest."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harmonium.learning.batches import Batches
from harmonium.models import BoltzmannMachine
from harmonium.samplers import Gibbs


class MissingValues:
    """The current draw of each unknown entry of the data; each time a row is used, one Gibbs step draws it again.

    As the model learns, the draws follow `p(unknown | known)`: data augmentation (Tanner and Wong 1987). The values are
    carried from epoch to epoch like persistent chains.
    """

    def __init__(self, model: BoltzmannMachine, x: Tensor) -> None:
        self.model = model
        self.unknown = x.isnan()
        known = torch.where(self.unknown, 0.0, x)
        mean = known.sum(0) / (~self.unknown).sum(0).clamp_min(1)
        self.values = torch.where(self.unknown, mean, known)

    @classmethod
    def of(cls, model: nn.Module, batches: Batches) -> MissingValues | None:
        """Return the missing values of the data, or None if there are none."""
        x = batches.x
        if x is None or not x.is_floating_point() or not bool(x.isnan().any()):
            return None
        if not isinstance(model, BoltzmannMachine):
            raise TypeError(f"Missing values need a BoltzmannMachine, which can draw them. Got {type(model).__name__}.")
        model.layer(model.data_layer).check_shape(x, "data")
        model.layer(model.data_layer).check_known(~x.isnan(), "data")
        return cls(model, x)

    @torch.no_grad()
    def fill(self, index: Tensor, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Return the rows with their unknown entries drawn anew."""
        unknown = self.unknown[index].to(x.device)
        if not bool(unknown.any()):
            return x
        sampler = Gibbs(clamp={self.model.data_layer: ~unknown})
        start = torch.where(
            unknown, self.values[index].to(x), x
        )  # the known entries as they are now, after a transform
        state = sampler.init(self.model, start, generator=generator)
        state, _ = sampler.step(self.model, state, generator=generator)
        filled = state[self.model.data_layer]
        self.values[index] = filled.to(self.values)
        return filled
