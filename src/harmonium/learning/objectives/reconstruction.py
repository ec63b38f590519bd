"""A deep belief network learns as a whole from what its code gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from harmonium import workers
from harmonium.draws import draw_normal
from harmonium.learning.objectives.base import Objective, data_alone
from harmonium.models import DBN


@dataclass
class Reconstruction(Objective):
    """`-log p(v | θ) = A(θ) - θ·s(v) - log μ(v)`, θ the field on the data that the top code of v gives back.

    Up and down go by means, and the loss reaches every machine (Hinton and Salakhutdinov 2006): its gradient in θ is
    `f(θ) - v` for units of any kind. `SummedLayers` lets each machine learn from its own loss alone. A network with
    recognition weights of its own (`dbn.untied()`) learns both ways.

    Normal noise of `noise` times the range of the code's units is added to the code, so that codes nearby must stand
    for images nearby; samples of a law of the codes then look like data.

    >>> dbn = DBN.from_spec("conv 8 4x4/2, dense 10", shape=(1, 8, 8), levels=255)
    >>> Reconstruction().loss(dbn, torch.full((5, 1, 8, 8), 100.0)).shape
    torch.Size([])
    """

    noise: float = 0.0
    metrics: dict[str, float] = field(default_factory=dict, repr=False, compare=False)

    def check(self, model: nn.Module) -> None:
        """Raise unless the model is a deep belief network."""
        _network(model)

    def divides(self, model: nn.Module) -> bool:
        """Return True: each row is rebuilt by itself."""
        return type(self) is Reconstruction

    def loss(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the mean over the batch of the loss, summed over the units of the data."""
        dbn = _network(model)
        v = data_alone(dbn, batch, self)
        code = dbn.up(v)
        if self.noise:
            low, high = dbn[-1].hidden.bounds()
            code = code + self.noise * (high - low) * draw_normal(code, generator=generator)
        theta, units = dbn.field_below(code), dbn.visible
        with torch.no_grad():
            n = workers.whole(len(v))
            error, mean = (units.mean(theta) - v).square().sum(), workers.total(v, axis=0) / n
            total = workers.total((v - mean).square()).clamp_min(1e-12)
            per_unit = error / (n * v[:1].numel())
            self.metrics = {"reconstruction": per_unit.item(), "unexplained": (error / total).item()}
        return workers.mean(units.total(units.log_partition(theta) - units.log_base(v)) - units.inner(theta, v))

    def measured(self) -> dict[str, float]:
        """Return the squared error of the last batch, and as a share of its variance: 1 is the mean image."""
        return self.metrics


def _network(model: nn.Module) -> DBN:
    if not isinstance(model, DBN):
        raise TypeError(f"Reconstruction trains a DBN. Got {type(model).__name__}. Use CD() or PCD().")
    return model
