"""Binary units in blocks of which at most one is on."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor

from harmonium.draws import draw_categorical
from harmonium.types import softplus
from harmonium.units.base import Units


class MaxPooled(Units):
    """Probabilistic max-pooling (Lee et al. 2009, section 3.3): in each block of b × b units at most one is on.

    A block B has `A(θ) = log(1 + Σ_{j∈B} e^{θ_j})` and mean `e^{θ_j - A}`. Its pooled unit is on when one of the block
    is, with probability `1 - e^{-A} = Σ_{j∈B} E[x_j]`: `pool` is the sum over the block, of draws and of means alike.
    The layer is `(channels, height, width)`; with blocks of one unit it is the Bernoulli layer.

    >>> units = MaxPooled(1, 2, 2, block=2)
    >>> units.mean(torch.zeros(1, 2, 2)).sum(), units.pooled_shape
    (tensor(0.8000), (1, 1, 1))
    """

    def __init__(self, channels: int, height: int, width: int, block: int = 2) -> None:
        super().__init__(channels, height, width)
        if block < 1 or height % block or width % block:
            raise ValueError(
                f"`block` must divide the height and the width of the layer. Got block={block} for {height} × {width}. "
                "Change the block, or the padding of the convolution below."
            )
        self.channels, self.height, self.width, self.block = channels, height, width, block

    @property
    def pooled_shape(self) -> tuple[int, int, int]:
        """The shape of the pooled layer: one unit a block."""
        return self.channels, self.height // self.block, self.width // self.block

    @property
    def sites(self) -> tuple[int, ...]:
        """The blocks: one unit is a block of `block²` entries."""
        return self.pooled_shape

    @classmethod
    def examples(cls) -> list[Self]:
        """Return small layers of this kind, which the contracts are held to."""
        return [cls(1, 4, 2, block=2), cls(2, 1, 3, block=1)]

    def log_partition(self, field: Tensor) -> Tensor:
        """Return `A(θ) = log(1 + Σ_j e^{θ_j})` of each block."""
        return softplus(self._tiles(field).logsumexp((-3, -1)))

    def mean(self, field: Tensor) -> Tensor:
        """Return `e^{θ_j} / (1 + Σ_i e^{θ_i})`."""
        tiles = self._tiles(field)
        return self._image((tiles - softplus(tiles.logsumexp((-3, -1), keepdim=True))).exp())

    def variance(self, field: Tensor) -> Tensor:
        """Return `m_j (1 - m_j)` of each entry."""
        mean = self.mean(field)
        return mean * (1 - mean)

    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw which unit of each block is on, or none."""
        return self._draw(self.split_sites(self.mean(field)), generator)

    def mode(self, field: Tensor) -> Tensor:
        """Return the unit of the largest field of each block, if that is positive."""
        apart = self.split_sites(field)
        largest, place = apart.max(-1, keepdim=True)
        return self.join_sites(torch.zeros_like(apart).scatter_(-1, place, (largest > 0).to(field.dtype)))

    def log_base(self, x: Tensor) -> Tensor:
        """Return 0 for each block."""
        return x.new_zeros((*x.shape[: x.ndim - 3], *self.sites))

    def link(self, mean: Tensor) -> Tensor:
        """Return `θ_j = log m_j - log(1 - Σ_i m_i)`; a block that is always on gets a large, finite field."""
        tiles = self._tiles(mean)
        off = (1 - tiles.sum((-3, -1), keepdim=True)).clamp_min(torch.finfo(mean.dtype).eps)
        return self._image(tiles.log() - off.log())

    def states(self) -> Tensor:
        """Return all off, and each one on."""
        n = self.block**2
        return torch.cat([torch.zeros(1, n, dtype=torch.float64), torch.eye(n, dtype=torch.float64)])

    def check_support(self, x: Tensor, name: str) -> None:
        """Raise unless the values are those of the units or means of such: a block sums to 1 at most."""
        super().check_support(x, name)
        if x.numel() and not x.is_meta and (largest := self.pool(x).amax().item()) > 1 + 1e-4:
            raise ValueError(
                f"A block of `{name}` sums to {largest:g}. At most one unit of a block of {self!r} is on, so that the "
                "sum is at most 1. Use Bernoulli units for values that do not exclude each other."
            )

    def pool(self, x: Tensor) -> Tensor:
        """Return the pooled layer: the sum over each block, `1 - P(all off)` where x are means."""
        return self._tiles(x).sum((-3, -1))

    def spread(self, pooled: Tensor, field: Tensor) -> Tensor:
        """Return the mean of the units given the pooled layer: `p · softmax_j θ` inside each block."""
        tiles = self._tiles(field)
        share = (tiles - tiles.logsumexp((-3, -1), keepdim=True)).exp()
        return self._image(share * pooled.unsqueeze(-1).unsqueeze(-3))

    def sample_spread(self, pooled: Tensor, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw the units given the pooled layer: where p = 1 one of the block by `softmax θ`, else none."""
        return self._draw(self.split_sites(self.spread(pooled, field)), generator)

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

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor by their names."""
        return {"channels": self.channels, "height": self.height, "width": self.width, "block": self.block}

    def _draw(self, probability: Tensor, generator: torch.Generator | None) -> Tensor:
        off = (1 - probability.sum(-1, keepdim=True)).clamp_min(0)
        return self.join_sites(draw_categorical(torch.cat([off, probability], -1), generator=generator)[..., 1:])

    def _tiles(self, x: Tensor) -> Tensor:
        """Return images as `(…, rows, block, columns, block)`, a view."""
        return x.unflatten(-1, (-1, self.block)).unflatten(-3, (-1, self.block))

    def _image(self, tiles: Tensor) -> Tensor:
        return tiles.flatten(-2).flatten(-3, -2)
