"""With how many digits matrix products are made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_NAMES = {"tf32": "high", "bf16": "medium"}


@contextmanager
def products_in(precision: str) -> Iterator[None]:
    """Let products within the block be made as asked, where the processor can: by PyTorch's own switch.

    `float32` leaves the switch as it is. Sums, draws, gradients and parameters stay in single precision.
    """
    before = torch.get_float32_matmul_precision()
    if precision in _NAMES:
        torch.set_float32_matmul_precision(_NAMES[precision])
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
