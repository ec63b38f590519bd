"""Learn a machine from data whose scale varies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from harmonium import workers
from harmonium.draws import draw_normal
from harmonium.learning.objectives.base import Case, Objective, Phases, data_alone
from harmonium.learning.objectives.contrastive import Contrastive
from harmonium.learning.objectives.pcd import PCD
from harmonium.models import RBM, ScaleMixture
from harmonium.models.observed import draw_observed
from harmonium.types import State, gradient, without_gradient
from harmonium.units import Bernoulli, Gaussian


@dataclass
class ScaledContrast(Objective):
    """The contrast of the machine in a `ScaleMixture` on data divided by a scale drawn from `p(m | x)`.

    `-∂ log p(x) = E[∂F(x/z_m) | x] + ∂ log Z`: a scale drawn from its law given x leaves the gradient unbiased, Z does
    not know of scales, and that of `log_share` is `π_m - p(m | x)`, exactly.

    >>> ScaledContrast().contrast.n_chains
    100
    """

    contrast: Contrastive = field(default_factory=PCD)

    def __post_init__(self) -> None:
        self.n_chains = self.contrast.n_chains

    @property
    def persistent(self) -> bool:  # type: ignore[override]
        """Whether the chains of the machine go on from update to update."""
        return self.contrast.persistent

    @classmethod
    def examples(cls) -> list[Case]:
        """Return a mixture with its own law, drawn exactly, and chains that follow its machine."""
        generator = torch.Generator().manual_seed(0)
        rbm = RBM(Gaussian(3), Bernoulli(2)).double()
        mixture = ScaleMixture(rbm, 0.5, 2.0, 3).double()
        with torch.no_grad():
            for parameter in mixture.parameters():
                parameter.copy_(draw_normal(parameter, generator=generator) * 0.5)

        def draw(n: int, *, generator: torch.Generator | None = None) -> State:
            return {"x": mixture.multiplied(_exactly(rbm, n, generator), generator=generator)}

        def objective(*, generator: torch.Generator | None = None) -> ScaledContrast:
            made = PCD(n_chains=64)
            v = _exactly(rbm, 64, generator)
            made.chains = {"visible": v, "hidden": rbm.sample("hidden", {"visible": v}, generator=generator)}
            return cls(made)

        return [Case(objective, mixture, draw)]

    def check(self, model: nn.Module) -> None:
        """Raise unless the model is a scale mixture."""
        if not isinstance(model, ScaleMixture):
            raise TypeError(f"ScaledContrast learns a ScaleMixture. Got {type(model).__name__}. Use PCD, or wrap it.")

    def divides(self, model: nn.Module) -> bool:
        """Return whether the contrast of the machine can be divided; each row has a scale of its own."""
        return type(self) is ScaledContrast and self.contrast.divides(self._mixture(model).machine)

    def chain_axis(self) -> int | None:
        """Return the axis of the chains of the contrast."""
        return self.contrast.chain_axis()

    def loss(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return `F(u) - F(u⁻) - Σ_m p(m | x) log π_m` on average, u and `p(m | x)` held constant."""
        mixture, x = self._mixture(model), data_alone(model, batch, self)
        with torch.no_grad():
            share = mixture.scale_probabilities(x)
        u = mixture.divided(x, share, generator=generator)
        contrast = self.contrast.loss(mixture.machine, u, generator=generator)
        return contrast - workers.mean((share * mixture.log_share.log_softmax(0)).sum(-1))

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
        """Add the gradient of the contrast at the drawn scales, and `π_m - p(m | x)` on average.

        The phases are those of the machine, at x/z_m.
        """
        if weight is not None:
            raise ValueError("ScaledContrast has no weights of rows. Leave `weights` out.")
        mixture, x = self._mixture(model), data_alone(model, batch, self)
        probability = mixture.scale_probabilities(x)
        u = mixture.divided(x, probability, generator=generator)
        n = workers.whole(len(x))
        gradient(mixture.log_share).add_(mixture.share() * (len(x) / n) - probability.sum(0) / n)
        return self.contrast.accumulate_grad(mixture.machine, u, index=index, generator=generator)

    def _mixture(self, model: nn.Module) -> ScaleMixture:
        self.check(model)
        return model  # type: ignore[return-value]

    def state_dict(self) -> State:
        """Return what the contrast carries."""
        return self.contrast.state_dict()

    def load_state_dict(self, state: State) -> None:
        """Give the contrast back what it carried."""
        self.contrast.load_state_dict(state)


def _exactly(rbm: RBM, n: int, generator: torch.Generator | None) -> Tensor:
    return draw_observed(rbm, torch.full((n, *rbm.visible.shape), torch.nan, dtype=torch.float64), generator=generator)
