"""EfficientNet-Lite0, the image classifier whose pooled features serve as coordinates of color images."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, relu6
from torch.nn.utils.fusion import fuse_conv_bn_eval

N_FEATURES, N_CLASSES, SIDE = 1280, 1000, 224
"""Pooled features, classes of ImageNet, and the side of the images that the network was trained on."""

_EPS = 1e-3  # of the batch normalizations


@dataclass(frozen=True)
class _Stage:
    """Blocks of one width: the first has the stride, the others keep the size and add their input."""

    n_blocks: int
    kernel: int
    stride: int
    expansion: int
    width: int


_STAGES = (
    _Stage(1, 3, 1, 1, 16),
    _Stage(2, 3, 2, 6, 24),
    _Stage(2, 5, 2, 6, 40),
    _Stage(3, 3, 2, 6, 80),
    _Stage(3, 5, 1, 6, 112),
    _Stage(4, 5, 2, 6, 192),
    _Stage(1, 3, 1, 6, 320),
)
_STEM = 32

_PAIRS = (
    ("conv_stem", "bn0"),
    ("expand_conv", "bn0"),
    ("depthwise_conv", "bn1"),
    ("project_conv", "bn2"),
    ("conv_head", "bn1"),
)


class _SameConv2d(nn.Conv2d):
    """A convolution with the padding that TensorFlow calls SAME: `⌈n/s⌉` places, an odd rest at the right and below."""

    def forward(self, x: Tensor) -> Tensor:
        kernel, stride = self.kernel_size[0], self.stride[0]
        gaps = [max(0, (-(-n // stride) - 1) * stride + kernel - n) for n in x.shape[:-3:-1]]  # width, height
        x = pad(x, [side for gap in gaps for side in (gap // 2, gap - gap // 2)]) if any(gaps) else x
        return super().forward(x)


def _conv(n_in: int, n_out: int, kernel: int = 1, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    return _SameConv2d(n_in, n_out, kernel, stride, groups=groups, bias=False)


def _norm(n: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(n, eps=_EPS)


class _Block(nn.Module):
    """The inverted bottleneck of Sandler et al. 2018: widen, filter each channel, narrow; add the input if it fits."""

    def __init__(self, n_in: int, n_out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = n_in * expansion
        self.expand_conv = _conv(n_in, wide) if expansion > 1 else None
        self.bn0 = _norm(wide) if expansion > 1 else None
        self.depthwise_conv, self.bn1 = _conv(wide, wide, kernel, stride, groups=wide), _norm(wide)
        self.project_conv, self.bn2 = _conv(wide, n_out), _norm(n_out)
        self.residual = stride == 1 and n_in == n_out

    def forward(self, x: Tensor) -> Tensor:
        y = x if self.expand_conv is None or self.bn0 is None else relu6(self.bn0(self.expand_conv(x)))
        y = relu6(self.bn1(self.depthwise_conv(y)))
        y = self.bn2(self.project_conv(y))
        return x + y if self.residual else y


class EfficientNetLite0(nn.Module):
    """EfficientNet-B0 without squeeze-and-excitation and with ReLU6 (Tan and Le 2019; the "lite" models of 2020).

    Images are `(n, 3, 224, 224)`, red, green and blue as `(x - 127)/128` of 0..255. Evaluation mode only: no dropout.

    >>> network = EfficientNetLite0()
    >>> sum(p.numel() for p in network.parameters())
    4652008
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv_stem, self.bn0 = _conv(3, _STEM, 3, 2), _norm(_STEM)
        blocks, width = [], _STEM
        for stage in _STAGES:
            for i in range(stage.n_blocks):
                stride = stage.stride if i == 0 else 1
                blocks.append(_Block(width, stage.width, stage.kernel, stride, stage.expansion))
                width = stage.width
        self.blocks = nn.Sequential(*blocks)
        self.conv_head, self.bn1 = _conv(width, N_FEATURES), _norm(N_FEATURES)
        self.fc = nn.Linear(N_FEATURES, N_CLASSES)
        self.eval()

    def features(self, x: Tensor) -> Tensor:
        """Return the activities of the last convolution averaged over the image, `(n, 1280)`."""
        y = self.blocks(relu6(self.bn0(self.conv_stem(x))))
        return relu6(self.bn1(self.conv_head(y))).mean((-2, -1))

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of the 1000 classes of ImageNet."""
        return self.fc(self.features(x))

    def load_published(self, tensors: dict[str, Tensor]) -> None:
        """Load the published parameters, whose names begin with underscores: `_blocks.0._bn1.weight`."""
        self.load_state_dict({name.lstrip("_").replace("._", "."): value for name, value in tensors.items()})

    def folded(self) -> EfficientNetLite0:
        """Return a copy with each normalization multiplied into the convolution before it: the same map, faster."""
        network = copy.deepcopy(self).requires_grad_(False).eval()
        for holder in (network, *network.blocks):
            for conv, norm in _PAIRS:
                if getattr(holder, conv, None) is not None:
                    setattr(holder, conv, fuse_conv_bn_eval(getattr(holder, conv), getattr(holder, norm)))
                    setattr(holder, norm, nn.Identity())
        return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
