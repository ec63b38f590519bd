"""Weights of 16 bits as two matrices of bytes, and their products."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch
from torch import Tensor

from harmonium import native
from harmonium.types import capabilities


@functools.cache
def is_exact() -> bool:
    """Return whether sums of products of bytes are right: older instructions than VNNI add pairs of them in 16 bits.

    A processor may have the new ones and oneDNN be held to the old (`DNNL_MAX_CPU_ISA`).
    """
    most = torch.full((64, 64), 127, dtype=torch.int8, device="cpu")
    return bool((torch._int_mm(most, most) == 64 * 127 * 127).all())


INTEGERS = any(capabilities().get(name) for name in ("avx512_vnni", "avx_vnni", "amx_int8")) and is_exact()
"""Whether the processor multiplies bytes faster than floats; without such instructions it is 20 to 60 times slower."""

_MOST, _MOST_UNITS = 127 * 256 + 127, 2**17 - 1  # 128 · 128 · 2¹⁷ is the first sum beyond 32 bits


def can_multiply_bytes(x: Tensor) -> bool:
    """Return whether a layer can be multiplied as bytes: floats of a CPU that is fast at it, no gradient asked for."""
    is_plain = x.dtype == torch.float32 and x.device.type == "cpu" and x.shape[-1] <= _MOST_UNITS
    return INTEGERS and is_plain and not (torch.is_grad_enabled() and x.requires_grad)


class Planes(NamedTuple):
    """Weights on a grid of 16 bits, `δ (256 a + b)`: two matrices of bytes and the step δ of the grid."""

    high: Tensor
    low: Tensor
    step: float

    @classmethod
    def of(cls, weight: Tensor) -> Planes:
        """Return the nearest weights on the finest grid that holds them all, of a step that is a power of two.

        Where some are not finite the step is NaN, and so are all weights and products.

        >>> planes = Planes.of(torch.tensor([[1.0, -0.3]]))
        >>> planes.step, planes.weight().tolist()
        (6.103515625e-05, [[1.0, -0.29998779296875]])
        """
        least, most = (float(x) for x in weight.aminmax()) if weight.numel() else (0.0, 1.0)
        largest = max(-least, most, 2.0**-100)
        step = 2.0 ** math.ceil(math.log2(largest / _MOST)) if math.isfinite(least + most) else math.nan
        made = native.split_planes(weight, step)
        if made is not None:
            return cls(*made, step)
        whole = (weight.double() / step).nan_to_num_().round().to(torch.int32)
        low = (whole + 128) % 256 - 128
        return cls(((whole - low) // 256).to(torch.int8), low.to(torch.int8), step)

    def weight(self) -> Tensor:
        """Return the weights as floats, none of them rounded."""
        return (256 * self.high.float() + self.low.float()) * self.step

    def product(self, left: Tensor, *, transposed: bool = False) -> Tensor | None:
        """Return `left @ W` (or `Wᵀ`) by two products of bytes, exact but for the last rounding.

        None where `left` is not made of whole numbers of 8 bits.
        """
        rows = as_bytes(left)
        if rows is None:
            return None
        joined = self.product_of_bytes(rows.reshape(-1, left.shape[-1]), transposed=transposed)
        return joined.view(*left.shape[:-1], joined.shape[-1])

    def product_of_bytes(self, rows: Tensor, *, transposed: bool = False) -> Tensor:
        """Return the product of a matrix of bytes with W, or with `Wᵀ`."""
        high, low = (torch._int_mm(rows, plane.t() if transposed else plane) for plane in (self.high, self.low))
        made = native.join_planes(high, low, self.step)
        return ((256 * high.double() + low) * self.step).float() if made is None else made


def as_bytes(x: Tensor) -> Tensor | None:
    """Return whole numbers of 8 bits as such; None where some are none."""
    made = native.as_bytes(x)
    if made is None:
        whole = x.to(torch.int8)
        made = whole, torch.equal(whole.to(x), x)
    return made[0] if made[1] else None
