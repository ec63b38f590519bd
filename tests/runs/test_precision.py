"""Products with fewer digits are asked for by PyTorch's own switch, which is put back."""

from __future__ import annotations

import torch

from harmonium.runs.precision import products_in


def test_the_switch_is_put_back() -> None:
    before = torch.get_float32_matmul_precision()
    for name, asked in (("float32", before), ("tf32", "high"), ("bf16", "medium")):
        with products_in(name):
            assert torch.get_float32_matmul_precision() == asked
        assert torch.get_float32_matmul_precision() == before
