"""The one place where the matrix products of layers are made, by the library that runs them fastest on this processor.

PyTorch multiplies by MKL, which does not use the 512-bit instructions of AMD's processors; oneDNN, which PyTorch brings
for its convolutions, does. There it makes the products of an update in less than half of the time. Which of the two it
is follows from the processor alone and is not measured at run time: a run that is resumed must find the same bits.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from harmonium.types import capabilities, without_gradient


def _onednn_is_faster() -> bool:
    """Return whether this is a processor of AMD with 512-bit instructions, and oneDNN is there and free to use them."""
    return (
        torch.backends.cpu.get_cpu_capability() == "AVX512"
        and str(capabilities().get("cpu_name", "")).startswith("AMD")
        and torch.backends.mkldnn.is_available()
    )


ONEDNN = _onednn_is_faster()
"""Whether large products go to oneDNN."""

SMALL, SMALL_SUM = 2**20, 2**24
"""Products of fewer multiplications stay with MKL, since a call of oneDNN costs 8 µs more; so do those below the second
number that are added to a gradient, which oneDNN does in a pass of its own."""


def product(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return `left @ right`, `(*batch, n) @ (n, m)`, plus a bias on each row where there is one.

    >>> product(torch.ones(2, 3), torch.ones(3, 1), torch.ones(1)).flatten().tolist()
    [4.0, 4.0]
    """
    if ONEDNN and _is_for_onednn(left, right, SMALL):
        return _by_onednn(left, right, bias)
    made = left @ right
    return made if bias is None else made.add_(bias)


@without_gradient
def add_product(parameter: nn.Parameter, left: Tensor, right: Tensor, scale: float) -> None:
    """Add `scale · left @ right` to the gradient of a matrix; the first product of an update makes it."""
    if ONEDNN and _is_for_onednn(left, right, SMALL_SUM):
        if parameter.grad is None:
            parameter.grad = _by_onednn(left, right * scale)
        else:
            parameter.grad.add_(_by_onednn(left, right), alpha=scale)
    elif parameter.grad is None:
        parameter.grad = torch.addmm(parameter, left, right, beta=0.0, alpha=scale)
    else:
        parameter.grad.addmm_(left, right, alpha=scale)


@without_gradient
def make_contrast(
    parameter: nn.Parameter, gained: tuple[Tensor, Tensor, float], lost: tuple[Tensor, Tensor, float]
) -> None:
    """Make the gradient `a xᵀy + b zᵀw` of a matrix from two pairs of matrices whose rows are samples, (x, y, a) first.

    oneDNN, which adds to nothing and wants rows that lie in a row, makes it as one product, `[x; z]ᵀ [a y; b w]`: a
    tenth less time than two with a sum.
    """
    (x, y, a), (z, w, b) = gained, lost
    if not (ONEDNN and all(_is_for_onednn(left.t(), right, SMALL_SUM) for left, right in ((x, y), (z, w)))):
        add_product(parameter, x.t(), y, a)
        add_product(parameter, z.t(), w, b)
        return
    n, both = len(x), len(x) + len(z)
    left, right = x.new_empty(x.shape[1], both), y.new_empty(both, y.shape[1])
    left[:, :n].copy_(x.t())
    left[:, n:].copy_(z.t())
    torch.mul(y, a, out=right[:n])
    torch.mul(w, b, out=right[n:])
    parameter.grad = _by_onednn(left, right)


def _by_onednn(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    made: Tensor = torch.ops.mkldnn._linear_pointwise(left, right.t(), bias, "none", [], "")
    return made


def _is_for_onednn(left: Tensor, right: Tensor, small: int) -> bool:
    """Return whether a product is not small, in single precision on the CPU, and no gradient is asked of it."""
    return (
        left.numel() * right.shape[1] >= small
        and left.dtype == right.dtype == torch.float32
        and left.device.type == right.device.type == "cpu"
        and not (torch.is_grad_enabled() and (left.requires_grad or right.requires_grad))
    )
