"""A network of dense layers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import nn

from harmonium.networks.layered_network import LayeredNetwork
from harmonium.networks.layers import activation_of, linear


class MLP(LayeredNetwork):
    """`x → W_L a(… a(W_1 x + b_1) …) + b_L`, a multilayer perceptron with a smooth activation a.

    `shape` is that of one sample, `n_outputs` 1 for an energy or the number of classes. `spectral` divides each weight
    by its largest singular value. No batch normalization: the energy of a sample must not depend on the others.

    >>> MLP((1, 8, 8), 10, hidden=(64,))(torch.zeros(3, 1, 8, 8)).shape
    torch.Size([3, 10])
    """

    def __init__(
        self,
        shape: int | Sequence[int],
        n_outputs: int = 1,
        *,
        hidden: Sequence[int] = (256, 256),
        activation: str = "silu",
        spectral: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(shape, n_outputs, activation=activation, spectral=spectral)
        self.hidden = tuple(hidden)
        widths = (math.prod(self.shape), *self.hidden, n_outputs)
        layers: list[nn.Module] = [nn.Flatten()]
        for n_in, n_out in itertools.pairwise(widths):
            layers += [linear(n_in, n_out, spectral=spectral, generator=generator), activation_of(activation)]
        self.layers = nn.Sequential(*layers[:-1])
