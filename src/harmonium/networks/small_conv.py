"""A small convolutional network."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from harmonium.networks.layered_network import LayeredNetwork
from harmonium.networks.layers import activation_of, conv, linear


class SmallConv(LayeredNetwork):
    """The picture cut into `patch` × `patch` pieces, 3×3 convolutions over the pieces, then two dense layers.

    `shape` is `(channels, height, width)`; each entry of `channels` is a convolution of stride 1, `hidden` the width of
    the dense layer. Working at the low resolution from the start makes a Langevin step cheap; strided convolutions,
    whose input gradient is slow on a CPU, cost about twice as much. Smooth activations, no batch normalization.

    >>> SmallConv((1, 28, 28), 10)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    n_axes = 3

    def __init__(
        self,
        shape: Sequence[int],
        n_outputs: int = 1,
        *,
        channels: Sequence[int] = (64, 64),
        patch: int = 4,
        hidden: int = 256,
        activation: str = "silu",
        spectral: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(shape, n_outputs, activation=activation, spectral=spectral)
        if shape[1] % patch or shape[2] % patch:
            raise ValueError(
                f"Height and width must be multiples of `patch`. Got shape={tuple(shape)}, patch={patch}. "
                "Choose another `patch`, or pad the pictures."
            )
        self.channels, self.patch, self.hidden = tuple(channels), patch, hidden
        layers: list[nn.Module] = [nn.PixelUnshuffle(patch)]
        width, area = self.shape[0] * patch**2, (self.shape[1] // patch) * (self.shape[2] // patch)
        for n in self.channels:
            layers += [conv(width, n, 3, spectral=spectral, generator=generator), activation_of(activation)]
            width = n
        layers += [nn.Flatten(), linear(width * area, hidden, spectral=spectral, generator=generator)]
        layers += [activation_of(activation), linear(hidden, n_outputs, spectral=spectral, generator=generator)]
        self.layers = nn.Sequential(*layers)
