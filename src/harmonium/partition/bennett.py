"""The ratio of two normalizers from weights made both ways."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def bennett(up: Tensor, down: Tensor) -> tuple[float, float]:
    """Return `log Z - log Z_0` and its error from log weights made upward and downward (Bennett 1976; Shirts 2003).

    The value c solves `Σ_up σ(up - c - M) = Σ_down σ(down + c + M)`, `M = log(n_up/n_down)`, found by bisection since
    the left side falls with c and the right side rises.
    """
    ratio = math.log(len(up) / len(down))
    low = min(up.min().item(), -down.max().item()) - 50.0
    high = max(up.max().item(), -down.min().item()) + 50.0
    for _ in range(100):
        c = (low + high) / 2
        balance = torch.sigmoid(up - c - ratio).sum() - torch.sigmoid(down + c + ratio).sum()
        low, high = (c, high) if balance > 0 else (low, c)
    c = (low + high) / 2
    f, g = torch.sigmoid(up - c - ratio), torch.sigmoid(down + c + ratio)
    return c, math.sqrt(_relative_variance(f) + _relative_variance(g))


def _relative_variance(x: Tensor) -> float:
    return (x.var() / x.mean().square() / len(x)).item()
