"""Inception-v3 as in the graph of 2015-12-05, the image classifier whose pooled features define FID."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, max_pool2d

N_FEATURES, N_CLASSES, SIDE = 2048, 1008, 299
"""Pooled features, classes (ImageNet's and 8 unused ones), and the side of the images."""

_EPS = 1e-3  # of the batch normalizations
_NORM = {"weight": "γ", "bias": "β", "running_mean": "μ", "running_var": "σ²"}

# A block is branches side by side (|) of stages in turn (,); a stage may fork (+). A convolution has a name, a width, a
# kernel and keeps the size, but not with /2, its stride, or when "valid". The names are those of the published file.
_A = (
    "branch1x1 64 1x1 | branch5x5_1 48 1x1, branch5x5_2 64 5x5 | branch3x3dbl_1 64 1x1, branch3x3dbl_2 96 3x3, "
    "branch3x3dbl_3 96 3x3 | average, branch_pool {0} 1x1"
)
_C = (
    "branch1x1 192 1x1 | branch7x7_1 {0} 1x1, branch7x7_2 {0} 1x7, branch7x7_3 192 7x1 | branch7x7dbl_1 {0} 1x1, "
    "branch7x7dbl_2 {0} 7x1, branch7x7dbl_3 {0} 1x7, branch7x7dbl_4 {0} 7x1, branch7x7dbl_5 192 1x7 | "
    "average, branch_pool 192 1x1"
)
_E = (
    "branch1x1 320 1x1 | branch3x3_1 384 1x1, branch3x3_2a 384 1x3 + branch3x3_2b 384 3x1 | branch3x3dbl_1 448 1x1, "
    "branch3x3dbl_2 384 3x3, branch3x3dbl_3a 384 1x3 + branch3x3dbl_3b 384 3x1 | {0}, branch_pool 192 1x1"
)
_BLOCKS = {
    "": "Conv2d_1a_3x3 32 3x3/2, Conv2d_2a_3x3 32 3x3 valid, Conv2d_2b_3x3 64 3x3, shrink, "
    "Conv2d_3b_1x1 80 1x1, Conv2d_4a_3x3 192 3x3 valid, shrink",
    "Mixed_5b.": _A.format(32),
    "Mixed_5c.": _A.format(64),
    "Mixed_5d.": _A.format(64),
    "Mixed_6a.": "branch3x3 384 3x3/2 | branch3x3dbl_1 64 1x1, branch3x3dbl_2 96 3x3, branch3x3dbl_3 96 3x3/2 | shrink",
    "Mixed_6b.": _C.format(128),
    "Mixed_6c.": _C.format(160),
    "Mixed_6d.": _C.format(160),
    "Mixed_6e.": _C.format(192),
    "Mixed_7a.": "branch3x3_1 192 1x1, branch3x3_2 320 3x3/2 | branch7x7x3_1 192 1x1, branch7x7x3_2 192 1x7, "
    "branch7x7x3_3 192 7x1, branch7x7x3_4 192 3x3/2 | shrink",
    "Mixed_7b.": _E.format("average"),
    "Mixed_7c.": _E.format("largest"),
}
_POOLS: dict[str, Callable[[Tensor], Tensor]] = {
    "average": partial(avg_pool2d, kernel_size=3, stride=1, padding=1, count_include_pad=False),
    "largest": partial(max_pool2d, kernel_size=3, stride=1, padding=1),
    "shrink": partial(max_pool2d, kernel_size=3, stride=2),
}


@dataclass(frozen=True)
class _Conv:
    """One convolution of the table with its number of input channels."""

    n_in: int
    width: int
    kernel: tuple[int, int]
    stride: int
    padding: tuple[int, int]


class InceptionV3(nn.Module):
    """Inception-v3 (Szegedy et al. 2016) as in the graph of 2015-12-05 that Heusel et al. 2017 measure FID with.

    Averages over 3 x 3 do not count the padding, and the last block takes the largest value instead. Images are
    `(n, 3, 299, 299)` as `(x - 128)/128` of 0..255, the result is `(n, 2048)`: the last block averaged over the image.
    Normalizations are multiplied into the convolutions. `tensors` are the parameters by their published names.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.convolutions = nn.ModuleDict()
        for name, conv in _convolutions().items():
            layer = nn.Conv2d(conv.n_in, conv.width, conv.kernel, conv.stride, conv.padding)
            gamma, beta, mean, variance = (tensors[f"{name}.bn.{part}"].double() for part in _NORM)
            gain = gamma / (variance + _EPS).sqrt()
            with torch.no_grad():
                layer.weight.copy_(tensors[f"{name}.conv.weight"].double() * gain[:, None, None, None])
                layer.bias.copy_(beta - mean * gain)  # type: ignore[union-attr]
            self.convolutions[name.replace(".", "/")] = layer
        self.to(memory_format=torch.channels_last).requires_grad_(False).eval()  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> Tensor:
        """Return the features `(n, 2048)`."""
        for prefix, text in _BLOCKS.items():
            x = torch.cat([self._branch(x, prefix, branch) for branch in text.split("|")], 1)
        return x.mean((-2, -1))

    def _branch(self, x: Tensor, prefix: str, text: str) -> Tensor:
        for stage in text.split(","):
            x = torch.cat([self._apply_step(x, prefix, step.split()[0]) for step in stage.split("+")], 1)
        return x

    def _apply_step(self, x: Tensor, prefix: str, name: str) -> Tensor:
        if name in _POOLS:
            return _POOLS[name](x)
        return self.convolutions[(prefix + name).replace(".", "/")](x).relu_()


def inception_shapes() -> dict[str, tuple[int, ...]]:
    """Return the shapes of the parameters by their published names, those of the classes left out.

    >>> inception_shapes()["Mixed_7c.branch_pool.conv.weight"]
    (192, 2048, 1, 1)
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for name, conv in _convolutions().items():
        shapes[f"{name}.conv.weight"] = (conv.width, conv.n_in, *conv.kernel)
        shapes |= {f"{name}.bn.{part}": (conv.width,) for part in _NORM}
    return shapes


def _convolutions() -> dict[str, _Conv]:
    """Read the table: every convolution by its name."""
    found: dict[str, _Conv] = {}
    n_in = 3
    for prefix, text in _BLOCKS.items():
        outputs = 0
        for branch in text.split("|"):
            width = n_in
            for stage in branch.split(","):
                convs = dict(_stage(prefix, stage, width))
                found |= convs
                width = sum(conv.width for conv in convs.values()) or width
            outputs += width
        n_in = outputs
    return found


def _stage(prefix: str, text: str, n_in: int) -> Iterator[tuple[str, _Conv]]:
    for step in text.split("+"):
        name, *numbers = step.split()
        if numbers:
            size, _, stride = numbers[1].partition("/")
            height, width = map(int, size.split("x"))
            same = not stride and "valid" not in numbers
            padding = (height // 2, width // 2) if same else (0, 0)
            yield prefix + name, _Conv(n_in, int(numbers[0]), (height, width), int(stride or 1), padding)
