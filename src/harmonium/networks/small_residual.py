"""A small residual network."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from harmonium.networks.layered_network import LayeredNetwork
from harmonium.networks.layers import activation_of, conv, linear


class SmallResidual(LayeredNetwork):
    """A 5×5 convolution of stride 2, then for each entry of `channels` a residual block `x ← P x + s C₂ a(C₁ a(x))`.

    Every block after the first halves the picture. P is the identity, or a 1×1 convolution where the shape changes; s
    starts at zero, so that a new network is nearly linear (Zhang, Dauphin and Ma 2019, who do without normalization).
    The mean over the picture goes into a dense layer.

    >>> SmallResidual((3, 32, 32), 10)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    n_axes = 3

    def __init__(
        self,
        shape: Sequence[int],
        n_outputs: int = 1,
        *,
        channels: Sequence[int] = (32, 64, 128),
        activation: str = "silu",
        spectral: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(shape, n_outputs, activation=activation, spectral=spectral)
        self.channels = tuple(channels)
        width = self.channels[0]
        layers: list[nn.Module] = [conv(self.shape[0], width, 5, stride=2, spectral=spectral, generator=generator)]
        for i, n in enumerate(self.channels):
            layers.append(_Block(width, n, 1 if i == 0 else 2, activation, spectral, generator))
            width = n
        layers += [activation_of(activation), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        layers += [linear(width, n_outputs, spectral=spectral, generator=generator)]
        self.layers = nn.Sequential(*layers)


class _Block(nn.Module):
    def __init__(
        self,
        n_inputs: int,
        n_outputs: int,
        stride: int,
        activation: str,
        spectral: bool,
        generator: torch.Generator | None,
    ) -> None:
        super().__init__()
        self.activation = activation_of(activation)
        self.first = conv(n_inputs, n_outputs, 3, stride=stride, spectral=spectral, generator=generator)
        self.second = conv(n_outputs, n_outputs, 3, spectral=spectral, generator=generator)
        self.scale = nn.Parameter(torch.zeros(()))
        same = n_inputs == n_outputs and stride == 1
        self.past = nn.Identity() if same else conv(n_inputs, n_outputs, 1, stride=stride, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        """Return `P x + scale · C₂ a(C₁ a(x))`."""
        change = self.second(self.activation(self.first(self.activation(x))))
        return self.past(x) + self.scale * change
