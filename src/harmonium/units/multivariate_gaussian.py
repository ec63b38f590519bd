"""Real units that are correlated: one unit is a whole vector."""

from __future__ import annotations

import math
from typing import Self

import torch
from torch import Tensor, nn

from harmonium.draws import draw_normal
from harmonium.memory import check_parameter
from harmonium.types import gradient, weighted_sum
from harmonium.units.base import Units


class MultivariateGaussian(Units):
    """One vector `x = Cu` of `size` values, `C = axes · diag(e^ρ)`: `log μ(x) = -|u|²/2`, the statistic is `u = C⁻¹x`.

    Under a field θ, `u ~ N(θ, I)`, so `x ~ N(Cθ, CCᵀ)` and `A(θ) = |θ|²/2 + (n/2) log 2π + log|det C|`. Couplings see
    coordinates in which the values are independent: learning is as well conditioned for columns that are nearly
    copies of each other as for independent ones. `axes` are set to the spread of data (`fit_parameters`) and stay; the
    scale ρ of each axis is learned.

    Entries of the vector may be unknown (NaN): `partial_weights` integrates over them, `complete` draws them, exactly.

    >>> units = MultivariateGaussian(2)
    >>> units.set_covariance(torch.tensor([[1.0, 0.6], [0.6, 1.0]]))
    >>> units.covariance
    tensor([[1.0000, 0.6000],
            [0.6000, 1.0000]], grad_fn=<MmBackward0>)
    """

    support = "real"
    axes: Tensor

    def __init__(self, size: int, floor: float = 1e-4) -> None:
        super().__init__(1, size)
        if not floor > 0:
            raise ValueError(f"`floor` must be a positive number. Got {floor}. Try floor=1e-4.")
        self.size = size
        self.floor = floor
        check_parameter((size, size))
        self.register_buffer("axes", torch.eye(size))
        self.log_scale = nn.Parameter(torch.zeros(size))

    @classmethod
    def examples(cls) -> list[Self]:
        """Return a correlated pair, which the contract is held to."""
        units = cls(2)
        units.set_covariance(torch.tensor([[1.2, -0.5], [-0.5, 0.7]]))
        with torch.no_grad():
            units.log_scale.copy_(torch.tensor([0.2, -0.1]))
        return [units]

    @property
    def sites(self) -> tuple[int, ...]:
        """One unit: the whole vector."""
        return (1,)

    def in_support(self, x: Tensor) -> Tensor:
        """Return whether each vector is finite, `(*batch, *sites)`."""
        return x.isfinite().all(-1)

    @property
    def factor(self) -> Tensor:
        """The matrix C with `x = Cu`."""
        return self.axes * self.log_scale.exp()

    @property
    def covariance(self) -> Tensor:
        """The covariance `CCᵀ` of the values under any field."""
        return self.factor @ self.factor.mT

    def log_partition(self, field: Tensor) -> Tensor:
        """Return `A(θ) = |θ|²/2 + (n/2) log 2π + log|det C|`."""
        log_volume = torch.linalg.slogdet(self.axes).logabsdet + self.log_scale.sum()
        return field.square().sum(-1) / 2 + self.size / 2 * math.log(2 * math.pi) + log_volume

    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw `x = C(θ + ε)` with standard normal ε."""
        return self.mean(draw_normal(field, generator=generator).add_(field))

    def mean(self, field: Tensor) -> Tensor:
        """Return `E[x] = Cθ`."""
        return field @ self.factor.mT

    def variance(self, field: Tensor) -> Tensor:
        """Return the diagonal of `CCᵀ`."""
        return self.factor.square().sum(1).expand_as(field)

    def mode(self, field: Tensor) -> Tensor:
        """Return the mean."""
        return self.mean(field)

    def statistic(self, x: Tensor) -> Tensor:
        """Return `u = C⁻¹x`."""
        return x @ self._inverse().mT

    def log_base(self, x: Tensor) -> Tensor:
        """Return `log μ(x) = -|C⁻¹x|²/2`."""
        return -self.statistic(x).square().sum(-1) / 2

    def link(self, mean: Tensor) -> Tensor:
        """Return `θ = C⁻¹m`."""
        return self.statistic(mean)

    def _inverse(self) -> Tensor:
        return torch.linalg.inv(self.axes) * (-self.log_scale).exp()[:, None]

    def accumulate_grad(
        self, weight: Tensor | float, work: Tensor | float, x: Tensor, *, summed_out: bool = False
    ) -> None:
        """Add `Σ weight · ∂E/∂ρ = Σ weight · (θu - u²)`, as `E = u²/2 - θu` and `∂u/∂ρ = -u`."""
        if not self.log_scale.requires_grad:
            return
        squares = weighted_sum(self.statistic(x).square(), weight, self.shape)
        if summed_out:  # E[u²] = θ² + 1
            squares = squares + weighted_sum(torch.ones_like(x), weight, self.shape)
        total = work - squares
        gradient(self.log_scale).add_(total.reshape(-1) if isinstance(total, Tensor) else total)

    @torch.no_grad()
    def set_covariance(self, covariance: Tensor) -> None:
        """Make `CCᵀ` this matrix: the axes are its eigenvectors, as long as the spread along them; ρ = 0."""
        variances, vectors = torch.linalg.eigh(covariance.double())
        spread = variances.clamp_min(0).sqrt().clamp_min(self.floor)
        self.axes.copy_(vectors * spread)
        self.log_scale.zero_()

    @torch.no_grad()
    def fit_parameters(self, x: Tensor) -> None:
        """Set the axes to the spread of the rows without holes, shrunk towards independence by 1/√n."""
        rows = x.reshape(-1, self.size).double()
        rows = rows[rows.isfinite().all(1)]
        if len(rows) < 2:
            return
        spread = torch.cov(rows.T, correction=0).reshape(self.size, self.size)
        share = len(rows) ** -0.5
        self.set_covariance((1 - share) * spread + share * spread.diagonal().diag())

    def check_known(self, known: Tensor, name: str) -> None:
        """Raise if a vector is known in part: a step of Gibbs sampling, which is asked for here, draws it whole."""
        if bool((known.any(-1) != known.all(-1)).any()):
            raise ValueError(
                f"`{name}` knows a vector of {self!r} in part. Its unknown entries depend on the known ones: draw them "
                "with harmonium.models.observed.draw_observed, or learn with ObservedLikelihood()."
            )

    def partial_weights(self, fields: Tensor, x: Tensor) -> Tensor:
        """Return `A(θ) + log N(x_o; (Cθ)_o, (CCᵀ)_oo)` with o the known entries: the others are integrated out.

        The distances are `(x - m)ᵀQ(x - m)` with Q the inverse of `(CCᵀ)_oo`, zero elsewhere, of each pattern of holes.
        """
        known = ~x.isnan()
        if bool(known.all()):
            return fields.flatten(1) @ self.statistic(x).flatten(1).mT + self.log_base(x).squeeze(-1)
        free = self.log_partition(fields)
        if not bool(known.any()):
            return free.expand(len(fields), len(x))
        distinct, factors, index = self._patterns(known)
        means = self.mean(fields).squeeze(-2)
        middle = means.detach().mean(0)  # near all of them, so that the squares do not cancel
        means, rows = means - middle, (x.squeeze(-2) - middle).where(known.squeeze(-2), 0.0)
        both = (distinct[:, :, None] & distinct[:, None, :]).to(rows)
        inverse = torch.cholesky_inverse(factors) * both
        pulled = (inverse[index] @ rows.unsqueeze(-1)).squeeze(-1)
        of_means = ((means @ inverse) * means).sum(-1)[index].mT
        distance = of_means - 2 * means @ pulled.mT + (rows * pulled).sum(-1)
        log_volume = factors.diagonal(dim1=-2, dim2=-1).log().sum(-1) + distinct.sum(-1).to(rows) / 2 * math.log(
            2 * math.pi
        )
        return free - distance / 2 - log_volume[index]

    def complete(self, field: Tensor, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw the unknown entries given the known ones: `x' + Σ_:o Σ_oo⁻¹ (x_o - x'_o)` with x' drawn from the law."""
        unknown = x.isnan()
        drawn = self.sample(field.expand_as(x), generator=generator)
        if bool(unknown.all()):
            return drawn
        _, factors, index = self._patterns(~unknown)
        gap = (x - drawn).where(~unknown, 0.0).squeeze(-2).unsqueeze(-1)
        solved = torch.cholesky_solve(gap, factors[index]).squeeze(-1)
        moved = drawn + (solved @ self.covariance).unsqueeze(-2)
        return torch.where(unknown, moved, x)

    def _patterns(self, known: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the distinct sets of known entries, the Cholesky factor of the covariance of each, and each row's.

        Unknown entries get a variance of 1 and no covariance, so that they change neither distance nor determinant.
        """
        distinct, index = known.squeeze(-2).unique(dim=0, return_inverse=True)
        both = distinct[:, :, None] & distinct[:, None, :]
        covariance = torch.where(both, self.covariance, torch.diag_embed((~distinct).to(self.axes.dtype)))
        return distinct, torch.linalg.cholesky(covariance), index
