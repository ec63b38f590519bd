"""Filters shared by all places of an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, conv_transpose2d

from harmonium.couplings.base import Coupling, Shapes, small_normal
from harmonium.types import Shaped, gradient, weighted, without_gradient


class Conv2d(Coupling):
    """The bilinear form `Φ(v, h) = Σ h · (v ⋆ W)`: the field up is a convolution, the field down its transpose.

    Layers are `(channels, height, width)`. Sizes must match without a remainder: `(height + 2·padding - kernel)` is a
    multiple of the stride, so that going up and down again gives the same image size.

    >>> Conv2d(3, 64, kernel=4, stride=2, padding=1).upper_shape((3, 32, 32))
    (64, 16, 16)
    """

    shares_places = True
    memory_format = torch.channels_last
    unit_axis = 0

    def __init__(
        self,
        lower_channels: int,
        upper_channels: int,
        *,
        kernel: int,
        stride: int = 1,
        padding: int = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if kernel < 1 or stride < 1 or padding < 0:
            raise ValueError(
                f"Conv2d needs kernel ≥ 1, stride ≥ 1 and padding ≥ 0. Got kernel={kernel}, stride={stride}, "
                f"padding={padding}."
            )
        self.lower_channels, self.upper_channels = lower_channels, upper_channels
        self.kernel, self.stride, self.padding = kernel, stride, padding
        weight = small_normal(upper_channels, lower_channels, kernel, kernel, generator=generator)
        self.weight = nn.Parameter(_channels_last(weight.detach()))

    @classmethod
    def examples(cls) -> list[tuple[Self, Shapes]]:
        """Return one that shrinks images by its kernel, and one that halves them."""
        halves = cls(2, 3, kernel=4, stride=2, padding=1)
        return [(cls(2, 3, kernel=3), ((2, 5, 4), (3, 3, 2))), (halves, ((2, 6, 4), (3, 3, 2)))]

    @property
    def shapes(self) -> tuple[None, None]:
        """Images of any size with the right channels."""
        return None, None

    def upper_shape(self, lower: tuple[int, ...]) -> tuple[int, int, int]:
        """Return the shape of the upper layer above images of shape `lower`, or say why it does not fit."""
        if len(lower) != 3 or lower[0] != self.lower_channels:
            raise ValueError(
                f"{self!r} needs a lower layer of shape ({self.lower_channels}, height, width). Got {lower}. "
                f"Build the units with that shape."
            )
        sizes = []
        for size in lower[1:]:
            steps, rest = divmod(size + 2 * self.padding - self.kernel, self.stride)
            if rest or steps < 0:
                raise ValueError(
                    f"{self!r} does not tile a side of {size}: ({size} + 2·{self.padding} - {self.kernel}) must be a "
                    f"multiple of the stride {self.stride} and not negative. Change the padding, kernel or stride, or "
                    "pad the images."
                )
            sizes.append(steps + 1)
        return self.upper_channels, sizes[0], sizes[1]

    def check_layers(self, names: Sequence[str], layers: Sequence[Shaped]) -> None:
        """Raise unless the upper layer is what the filters make of the lower one."""
        super().check_layers(names, layers)
        (_, lower), (name, upper) = zip(names, layers, strict=True)
        wanted = self.upper_shape(lower.shape)
        if upper.shape != wanted:
            raise ValueError(
                f"{self!r} above {names[0]}={lower!r} needs a layer {name!r} of shape {wanted}. Got {upper!r}."
            )

    def fans(self) -> tuple[int, int]:
        """Return the sizes of the filters: counted upwards, and downwards with the stride."""
        n_weights = self.kernel**2
        return self.lower_channels * n_weights, max(1, self.upper_channels * n_weights // self.stride**2)

    def field(self, to: int, *others: Tensor) -> Tensor:
        """Return `v ⋆ W` on the upper layer, or its transpose applied to h on the lower one."""
        other = others[0]
        images = _channels_last(other.flatten(end_dim=-4) if other.ndim > 4 else other)
        apply = conv_transpose2d if to == 0 else conv2d
        result = apply(images, self.weight, stride=self.stride, padding=self.padding)
        return result.unflatten(0, other.shape[:-3]) if other.ndim > 4 else result

    @without_gradient
    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        """Add `Σ weight · ∂Φ/∂W`: the weight gradient of a convolution at input v and output gradient h."""
        v, h = (_channels_last(x.reshape(-1, *x.shape[-3:])) for x in xs)
        if isinstance(weight, Tensor) and weight.ndim:
            h, weight = weighted(h, weight.reshape(-1)), 1.0
        pair = [self.stride, self.stride], [self.padding, self.padding]
        _, slope, _ = torch.ops.aten.convolution_backward(
            h, v, self.weight, None, *pair, [1, 1], False, [0, 0], 1, [False, True, False]
        )
        gradient(self.weight).add_(slope, alpha=float(weight))


def _channels_last(images: Tensor) -> Tensor:
    """Return images with their channels innermost in memory, which halves the time of the transposed convolution."""
    return images.contiguous(memory_format=torch.channels_last) if images.ndim == 4 else images
