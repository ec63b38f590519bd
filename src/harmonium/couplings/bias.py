"""A field of its own for each unit."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn

from harmonium.couplings.base import Coupling, Shapes, as_shape
from harmonium.memory import check_parameter
from harmonium.types import gradient, weighted_sum, without_gradient


class Bias(Coupling):
    """The linear form `Φ(x) = Σ_i b_i x_i`; it starts at zero.

    With `shared=True` all places of an image have one value a channel, as the filters of a convolution do.

    >>> Bias(3)(torch.ones(2, 3)).tolist()
    [0.0, 0.0]
    """

    def __init__(self, shape: int | tuple[int, ...], shared: bool = False) -> None:
        super().__init__()
        self.shape = as_shape(shape)
        self.shared = shared
        sizes = (self.shape[0], *(1,) * (len(self.shape) - 1)) if shared else self.shape
        check_parameter(sizes)
        self.bias = nn.Parameter(torch.zeros(sizes))

    @classmethod
    def examples(cls) -> list[tuple[Self, Shapes]]:
        """Return small ones with the shapes of their layers."""
        return [(cls(4), ((4,),)), (cls((2, 3, 3), shared=True), ((2, 3, 3),))]

    @property
    def shapes(self) -> tuple[tuple[int, ...]]:
        """The shape of the one layer."""
        return (self.shape,)

    def forward(self, *xs: Tensor) -> Tensor:
        """Return `Σ_i b_i x_i`, one product for the batch."""
        x = (
            xs[0].sum(tuple(range(1 - len(self.shape), 0)), keepdim=True)
            if self.shared and len(self.shape) > 1
            else xs[0]
        )
        return x.flatten(x.ndim - len(self.shape)) @ self.bias.flatten()

    def field(self, to: int, *others: Tensor) -> Tensor:
        """Return `b`, the same for every sample."""
        return self.bias

    def weights(self) -> list[nn.Parameter]:
        """Return nothing: a bias is not decayed."""
        return []

    def averaged(self, field: Tensor) -> Tensor:
        """Return a field on the layer, `(*shape)`, as a bias: averaged over the places that share one.

        >>> Bias((1, 2, 2), shared=True).averaged(torch.arange(4.0).reshape(1, 2, 2)).tolist()
        [[[1.5]]]
        """
        field = field.reshape(self.shape)
        return field.sum_to_size(self.bias.shape) * (self.bias.numel() / field.numel())

    @without_gradient
    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        """Add `Σ weight · x`."""
        gradient(self.bias).add_(weighted_sum(xs[0], weight, tuple(self.bias.shape)))
