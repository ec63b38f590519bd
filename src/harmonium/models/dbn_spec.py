"""Deep belief networks in words: `"conv 64 4x4/2, conv 128 4x4/2, dense 1000"`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import torch

from harmonium.couplings import Conv2d
from harmonium.models.rbm import RBM
from harmonium.units import Activation, Bernoulli, MaxPooled, Multinary, Units

_CONV = re.compile(r"conv (\d+) (\d+)x(\d+)(?:/(\d+))?(?: (?:pad |p)(\d+))?(?: pool (\d+))?")
_DENSE = re.compile(r"dense (\d+)")

MakeUnits = Callable[..., Units]
"""`make(*shape)` returns the units of a layer."""


def stack_of_spec(spec: str, visible: Units, make: MakeUnits, *, generator: torch.Generator | None = None) -> list[RBM]:
    """Return the machines of a spec above the data layer `visible`, bottom first; `make(*shape)` makes their units.

    A layer is `conv CHANNELS KxK[/STRIDE] [pad P] [pool B]` or `dense UNITS`; `p1` is short for `pad 1`. Without a
    padding, `(K - stride)/2` is taken, so that `/2` halves the image and stride 1 keeps it.

    >>> [rbm.hidden.shape for rbm in stack_of_spec("conv 4 4x4/2, dense 9", Bernoulli(1, 8, 8), Bernoulli)]
    [(4, 4, 4), (9,)]
    """
    entries = [" ".join(entry.split()) for entry in spec.split(",")]
    stack: list[RBM] = []
    for i, entry in enumerate(entries, 1):
        try:
            rbm = _layer(entry, visible, make, generator)
        except ValueError as error:
            raise ValueError(f"Layer {i} of the spec, {entry!r}, above a layer of {visible.shape}: {error}") from error
        stack.append(rbm)
        shape = rbm.hidden.pooled_shape if isinstance(rbm.hidden, MaxPooled) else rbm.hidden.shape
        flat = i < len(entries) and entries[i].startswith("dense")
        visible = make(*((math.prod(shape),) if flat else shape))
    return stack


def _layer(entry: str, visible: Units, make: MakeUnits, generator: torch.Generator | None) -> RBM:
    if found := _DENSE.fullmatch(entry):
        return RBM(visible, make(_positive(found[1], "units")), generator=generator)
    if not (found := _CONV.fullmatch(entry)):
        raise ValueError(
            "it is not understood. Write `conv 64 4x4/2`, `conv 64 5x5 pad 0 pool 2` or `dense 1000`, with commas "
            "between the layers."
        )
    channels, kernel, stride = _positive(found[1], "channels"), int(found[2]), int(found[4] or 1)
    if found[2] != found[3]:
        raise ValueError(f"filters are square. Got {found[2]}x{found[3]}.")
    if len(visible.shape) != 3:
        raise ValueError("a convolution needs images below it, (channels, height, width). Put `dense` layers last.")
    padding = _padding(kernel, stride) if found[5] is None else int(found[5])
    coupling = Conv2d(visible.shape[0], channels, kernel=kernel, stride=stride, padding=padding, generator=generator)
    shape = coupling.upper_shape(visible.shape)
    if found[6] is None:
        return RBM(visible, make(*shape), coupling)
    if not isinstance(made := make(*shape), Bernoulli):
        raise ValueError(
            f"probabilistic max-pooling is for binary units. Got {made!r}. Leave `pool` out and use a stride, or "
            "build the network with levels=1."
        )
    return RBM(visible, MaxPooled(*shape, block=_positive(found[6], "pool")), coupling)


def _padding(kernel: int, stride: int) -> int:
    if stride < 1 or kernel < stride or (kernel - stride) % 2:
        raise ValueError(
            f"no padding makes {kernel}x{kernel}/{stride} divide the image by {stride}: kernel - stride must be even "
            "and not negative. Give the padding, such as `pad 0`, or change the kernel."
        )
    return (kernel - stride) // 2


def _positive(text: str, name: str) -> int:
    if (value := int(text)) < 1:
        raise ValueError(f"`{name}` must be at least 1. Got {value}.")
    return value


def units_with_levels(
    levels: int, *, k: float | None = None, activation: str | Activation = "sigmoid", exact: bool = False
) -> MakeUnits:
    """Return a maker of layers with levels 0..N: Bernoulli units for N = 1, multinary ones above.

    >>> units_with_levels(255)(3, 32, 32)
    Multinary(3, 32, 32, levels=255)
    """
    if levels == 1 and k in (None, 1.0) and activation == "sigmoid":
        return Bernoulli
    return lambda *shape: Multinary(*shape, levels=levels, k=k, activation=activation, exact=exact)
