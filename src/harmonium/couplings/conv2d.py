"""Filters shared by all places of an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, conv_transpose2d

from harmonium.couplings.base import Coupling, Shapes, small_normal
from harmonium.types import Shaped, weighted, without_gradient

_FEW = 8
"""At most so many channels are convolved downwards block by block."""


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
        return self._applied(to, others[0], None)

    def biased_field(self, bias: Tensor, to: int, *others: Tensor) -> Tensor:
        """Return `b + v ⋆ W`, or b plus its transpose applied to h, in one pass where all places share the bias."""
        if bias.shape != ((self.lower_channels, self.upper_channels)[to], 1, 1):
            return super().biased_field(bias, to, *others)
        return self._applied(to, others[0], bias.flatten())

    def _applied(self, to: int, other: Tensor, bias: Tensor | None) -> Tensor:
        images = _channels_last(other.flatten(end_dim=-4) if other.ndim > 4 else other)
        if to == 0 and self._has_small_blocks and images.ndim == 4:
            result = self._block_by_block(images, bias)
        else:
            apply = conv_transpose2d if to == 0 else conv2d
            result = apply(images, self.weight, bias, stride=self.stride, padding=self.padding)
        return result.unflatten(0, other.shape[:-3]) if other.ndim > 4 else result

    @property
    def _has_small_blocks(self) -> bool:
        return self.lower_channels <= _FEW and self.stride > 1 and self.kernel % self.stride == 0

    def _block_by_block(self, h: Tensor, bias: Tensor | None) -> Tensor:
        """Return the transposed convolution as a plain one, whose outputs are the pixels of blocks of stride × stride.

        With `kernel = m·stride`, pixel `stride·y + r` of an image before the padding is cut off gets
        `Σ_{a<m} W[stride·a + r] h[y - a]`. oneDNN takes three times as long for the transposed one where the lower
        layer has three channels, which fill a fifth of a vector; the blocks have all that they need side by side.
        """
        s, m = self.stride, self.kernel // self.stride
        weight = self.weight.unflatten(3, (m, s)).unflatten(2, (m, s)).flip(2, 4).permute(3, 5, 1, 0, 2, 4)
        weight = _channels_last(weight.reshape(-1, self.upper_channels, m, m))
        blocks = conv2d(h, weight, None if bias is None else bias.repeat(s * s), padding=m - 1).permute(0, 2, 3, 1)
        n, height, width, _ = blocks.shape
        pixels = blocks.reshape(n, height, width, s, s, self.lower_channels).transpose(2, 3)
        pixels = pixels.reshape(n, height * s, width * s, self.lower_channels)
        p = self.padding
        return _channels_last(pixels[:, p : height * s - p, p : width * s - p].permute(0, 3, 1, 2))

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
        if self.weight.grad is None:
            self.weight.grad = slope.mul_(float(weight))
        else:
            self.weight.grad.add_(slope, alpha=float(weight))


def _channels_last(images: Tensor) -> Tensor:
    """Return images with their channels innermost in memory, which halves the time of the transposed convolution."""
    return images.contiguous(memory_format=torch.channels_last) if images.ndim == 4 else images
