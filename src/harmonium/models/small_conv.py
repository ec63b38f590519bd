"""A small convolutional network."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from harmonium.models.networks import activation_of, conv, linear


class SmallConv(nn.Module):
    """Convolutions that halve the picture from the first one on, then two dense layers: cheap enough to sample from.

    `shape` is `(channels, height, width)`; each entry of `channels` is a convolution of stride 2, 5×5 the first and
    3×3 the others; `hidden` is the width of the dense layer. Smooth activations, no batch normalization.

    >>> SmallConv((1, 28, 28), 10)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        shape: Sequence[int],
        n_outputs: int = 1,
        *,
        channels: Sequence[int] = (32, 64, 128),
        hidden: int = 256,
        activation: str = "silu",
        spectral: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if len(tuple(shape)) != 3:
            raise ValueError(f"`shape` must be (channels, height, width). Got {tuple(shape)}. Try (1, 28, 28).")
        self.shape, self.n_outputs, self.channels = tuple(shape), n_outputs, tuple(channels)
        self.hidden, self.activation, self.spectral = hidden, activation, spectral
        layers: list[nn.Module] = []
        width, height, breadth = self.shape
        for i, n in enumerate(self.channels):
            kernel = 5 if i == 0 else 3
            layers += [conv(width, n, kernel, stride=2, spectral=spectral, generator=generator)]
            layers += [activation_of(activation)]
            width, height, breadth = n, (height + 1) // 2, (breadth + 1) // 2
        layers += [nn.Flatten(), linear(width * height * breadth, hidden, spectral=spectral, generator=generator)]
        layers += [activation_of(activation), linear(hidden, n_outputs, spectral=spectral, generator=generator)]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs, `(n, n_outputs)`."""
        return self.layers(x)
