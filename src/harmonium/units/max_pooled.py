"""Units in blocks of which at most one is on."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, Self

import torch
from torch import Tensor

from harmonium.draws import draw_categorical
from harmonium.types import softplus
from harmonium.units.activation import Activation
from harmonium.units.base import Units
from harmonium.units.multinary import Multinary

_HALVINGS = 50


class MaxPooled(Units):
    """Probabilistic max-pooling: in each block of b × b units at most one is not 0 (Lee et al. 2009, section 3.3).

    Binary units have `A(θ) = log(1 + Σ_{j∈B} e^{θ_j})` in a block B, mean `e^{θ_j - A}`. Units with levels 0..N, each
    with the log-partition function a and mean f of `Multinary`, have `A(θ) = log(1 + Σ_{j∈B} (e^{a(θ_j)} - 1))` and
    mean `f(θ_j) e^{a(θ_j) - A}`, since a unit that is 0 weighs 1: with N = 1 this is the same, and the more levels, the
    more surely the unit with the largest field wins. The pooled unit has the one value of its block that is not 0, or
    0: `pool` is the sum over the block, of draws and of means alike. The layer is `(channels, height, width)`; with
    blocks of one unit it is the Bernoulli or the `Multinary` layer with this `k`, `activation` and `exact`.

    >>> units = MaxPooled(1, 2, 2, block=2)
    >>> units.mean(torch.zeros(1, 2, 2)).sum(), units.pooled_shape
    (tensor(0.8000), (1, 1, 1))
    """

    def __init__(
        self,
        channels: int,
        height: int,
        width: int,
        block: int = 2,
        levels: int = 1,
        k: float | None = None,
        activation: str | Activation = "sigmoid",
        exact: bool = False,
    ) -> None:
        super().__init__(channels, height, width)
        if block < 1 or height % block or width % block:
            raise ValueError(
                f"`block` must divide the height and the width of the layer. Got block={block} for {height} × {width}. "
                "Change the block, or the padding of the convolution below."
            )
        self.channels, self.height, self.width, self.block = channels, height, width, block
        self.levels, self.k, self.activation, self.exact = levels, k, activation, exact
        self.binary = levels == 1 and k in (None, 1.0) and activation == "sigmoid"
        self.member = Multinary(1, levels=levels, k=k, activation=activation, exact=exact)

    @property
    def pooled_shape(self) -> tuple[int, int, int]:
        """The shape of the pooled layer: one unit a block."""
        return self.channels, self.height // self.block, self.width // self.block

    @property
    def sites(self) -> tuple[int, ...]:
        """The blocks: one unit is a block of `block²` entries."""
        return self.pooled_shape

    @property
    def steepness(self) -> float:
        """The factor k on the field."""
        return self.member.steepness

    @property
    def proper(self) -> bool:
        """Smooth units with levels have no base measure."""
        return self.binary or self.exact

    @property
    def support(self) -> str:  # type: ignore[override]
        """Finite, but for smooth units with levels, which live on an interval."""
        return "finite" if self.proper else "real"

    @classmethod
    def examples(cls) -> list[Self]:
        """Return small layers of this kind, which the contracts are held to."""
        levels = [cls(1, 2, 4, levels=3, exact=True), cls(1, 2, 4, levels=255)]
        return [cls(1, 4, 2, block=2), cls(2, 1, 3, block=1), *levels]

    def log_partition(self, field: Tensor) -> Tensor:
        """Return `A(θ) = log(1 + Σ_j (e^{a_j} - 1))` of each block."""
        return softplus(self._log_on(self._tiles(field)).logsumexp((-3, -1)))

    def mean(self, field: Tensor) -> Tensor:
        """Return `f(θ_j) e^{a_j - A}`: `e^{θ_j} / (1 + Σ_i e^{θ_i})` for binary units."""
        share = self._shares(field)
        return share if self.binary else self.member.mean(field) * share

    def variance(self, field: Tensor) -> Tensor:
        """Return `E[x_j²] - E[x_j]²` of each entry, `E[x_j²] = (f' + f²) e^{a_j - A}`."""
        share = self._shares(field)
        if self.binary:
            return share * (1 - share)
        mean = self.member.mean(field)
        square = (self.member.variance(field) + mean.square()) * share
        return (square - (mean * share).square()).clamp_min(0)

    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw which unit of each block is on, or none, and its level."""
        apart = self.split_sites(field)
        log_on = self._log_on(apart)
        winner = self._draw((log_on - softplus(log_on.logsumexp(-1, keepdim=True))).exp(), generator)
        if not self.binary:
            level = self.member.sample_positive((winner * apart).sum(-1), generator=generator)
            winner = winner * level.unsqueeze(-1)
        return self.join_sites(winner)

    def mode(self, field: Tensor) -> Tensor:
        """Return the most probable state of each block; smooth units, the mean of the unit with the largest field."""
        apart = self.split_sites(field)
        weight, level = self._log_on(apart), torch.ones_like(apart)
        if not self.binary:
            level = self.member.mode(apart)
            if self.exact:
                level = level.clamp_min(1)
                weight = self.member.log_base(level) + apart * level
        largest, place = weight.max(-1, keepdim=True)
        value = level.gather(-1, place) * (largest > 0).to(field.dtype)
        return self.join_sites(torch.zeros_like(apart).scatter_(-1, place, value))

    def log_base(self, x: Tensor) -> Tensor:
        """Return `log μ` of the one level of each block that is not 0."""
        if self.exact and not self.binary:
            return self.member.log_base(self.split_sites(x)).sum(-1)
        return x.new_zeros((*x.shape[: x.ndim - 3], *self.sites))

    def link(self, mean: Tensor) -> Tensor:
        """Return the field under which the units have this mean; a block that is always on gets a large, finite field.

        Binary units have `θ_j = log m_j - log(1 - Σ_i m_i)`. With levels, `f(θ_j) e^{a_j} = m_j Z` is solved for θ_j by
        bisection, inside one for the Z that agrees with these fields.
        """
        if self.binary:
            tiles = self._tiles(mean)
            off = (1 - tiles.sum((-3, -1), keepdim=True)).clamp_min(torch.finfo(mean.dtype).eps)
            return self._image(tiles.log() - off.log())
        if mean.is_meta:  # 2,500 steps that would only say the shape again
            return torch.empty_like(mean)
        apart = self.split_sites(mean)
        log_mean = apart.clamp_min(torch.finfo(mean.dtype).tiny).log()
        end = torch.full_like(apart[..., :1], 40.0 / self.steepness)
        low, high = torch.zeros_like(end), self.member.log_partition(end)
        for _ in range(_HALVINGS):
            log_z = (low + high) / 2
            field = self._fields_of(log_mean + log_z)
            above = softplus(self._log_on(field).logsumexp(-1, keepdim=True)) > log_z
            low, high = torch.where(above, log_z, low), torch.where(above, high, log_z)
        return self.join_sites(field)

    def states(self) -> Tensor | None:
        """Return all off, and each one on at each of its levels; none for smooth units with levels."""
        if not self.proper:
            return None
        n = self.block**2
        on = torch.arange(1, self.levels + 1).double()[:, None, None] * torch.eye(n, dtype=torch.float64)
        return torch.cat([torch.zeros(1, n, dtype=torch.float64), on.reshape(-1, n)])

    def bounds(self) -> tuple[float, float]:
        """Return 0 and N."""
        return 0.0, float(self.levels)

    def in_support(self, x: Tensor) -> Tensor:
        """Return whether each block has a value that it can take: smooth units with levels any one number up to N."""
        if self.proper:
            return super().in_support(x)
        apart = self.split_sites(x)
        return ((apart >= 0) & (apart <= self.levels)).all(-1) & ((apart != 0).sum(-1) <= 1)

    def check_support(self, x: Tensor, name: str) -> None:
        """Raise unless the values are those of the units or means of such: a block sums to N at most."""
        super().check_support(x, name)
        if x.numel() and not x.is_meta and (largest := self.pool(x).amax().item()) > self.levels * (1 + 1e-4):
            raise ValueError(
                f"A block of `{name}` sums to {largest:g}. At most one unit of a block of {self!r} is on, so that the "
                f"sum is at most {self.levels}. Use Bernoulli or Multinary units for values that do not exclude each "
                "other."
            )

    def pool(self, x: Tensor) -> Tensor:
        """Return the pooled layer: the sum over each block, its mean where x are means."""
        return self._reduced(x, torch.add)

    def spread(self, pooled: Tensor, field: Tensor) -> Tensor:
        """Return the mean of the units given the pooled layer: `p · softmax_j pθ` inside each block.

        Given its level p, a block has the weights `μ(p) e^{pθ_j}`. Means of the pooled layer below 1 stand for p = 1.
        """
        return self.join_sites(self._split_pooled(pooled, field) * pooled.unsqueeze(-1))

    def sample_spread(self, pooled: Tensor, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw the units given the pooled layer: where p is not 0 one of the block by `softmax pθ`, else none."""
        share, levels = self._split_pooled(pooled, field), pooled.unsqueeze(-1)
        if self.binary:
            return self.join_sites(self._draw(share * levels, generator))
        return self.join_sites(draw_categorical(share, generator=generator) * levels)

    def split_sites(self, x: Tensor) -> Tensor:
        """Return `(*batch, *blocks, block²)`."""
        return self._tiles(x).transpose(-3, -2).flatten(-2)

    def join_sites(self, x: Tensor) -> Tensor:
        """Return `(*batch, *blocks, block²)` as images."""
        return self._image(x.unflatten(-1, (self.block, self.block)).transpose(-3, -2))

    def site(self, index: int) -> tuple[Any, ...]:
        """Return the place of one block in an image."""
        _, rows, columns = self.pooled_shape
        row, column = index // columns % rows * self.block, index % columns * self.block
        return (..., index // (rows * columns), slice(row, row + self.block), slice(column, column + self.block))

    def _log_on(self, field: Tensor) -> Tensor:
        """Return `log(e^a - 1)`, the weight of a unit that is not 0: the field itself for binary units."""
        if self.binary:
            return field
        a = self.member.log_partition(field)
        return a + (-torch.special.expm1(-a)).clamp_min(torch.finfo(a.dtype).tiny).log()

    def _shares(self, field: Tensor) -> Tensor:
        """Return `e^{a_j - A}` (`e^{θ_j - A}` for binary units), by `e^A = Σ_i e^{a_i} - (b² - 1)` (`+ 1`)."""
        weight = field if self.binary else self.member.log_partition(field)
        top = self._reduced(weight, torch.maximum).clamp_min(0.0)
        apart = (weight - self._everywhere(top)).exp()
        rest = 1.0 if self.binary else 1.0 - self.block**2
        return apart / self._everywhere(self.pool(apart) + rest * (-top).exp())

    def _fields_of(self, log_weight: Tensor) -> Tensor:
        """Return θ with `log f(θ) + a(θ) = log_weight`, by bisection."""
        high = torch.full_like(log_weight, 40.0 / self.steepness)
        low = -high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            weight = self.member.mean(middle).clamp_min(torch.finfo(low.dtype).tiny).log()
            above = weight + self.member.log_partition(middle) > log_weight
            low, high = torch.where(above, low, middle), torch.where(above, middle, high)
        return (low + high) / 2

    def _split_pooled(self, pooled: Tensor, field: Tensor) -> Tensor:
        """Return the law of the place in a block given its level, `(*batch, *blocks, block²)`."""
        return (self.split_sites(field) * pooled.unsqueeze(-1).clamp_min(1.0)).softmax(-1)

    def _draw(self, probability: Tensor, generator: torch.Generator | None) -> Tensor:
        """Draw one of the last axis with these probabilities, or none."""
        off = (1 - probability.sum(-1, keepdim=True)).clamp_min(0)
        return draw_categorical(torch.cat([off, probability], -1), generator=generator)[..., 1:]

    def _reduced(self, x: Tensor, combine: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Combine the entries of each block, slice by slice: PyTorch takes ten times as long to reduce short axes."""
        b = self.block
        return reduce(combine, [x[..., i::b, j::b] for i in range(b) for j in range(b)])

    def _everywhere(self, pooled: Tensor) -> Tensor:
        """Return the pooled layer with its value at each entry of a block."""
        return pooled.repeat_interleave(self.block, -1).repeat_interleave(self.block, -2)

    def _tiles(self, x: Tensor) -> Tensor:
        """Return images as `(…, rows, block, columns, block)`, a view."""
        return x.unflatten(-1, (-1, self.block)).unflatten(-3, (-1, self.block))

    def _image(self, tiles: Tensor) -> Tensor:
        return tiles.flatten(-2).flatten(-3, -2)
