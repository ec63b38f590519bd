"""Two classifiers on the same test samples."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor


def error_difference(
    one: Sequence[Collection[int]], other: Sequence[Collection[int]], n_test: int
) -> tuple[float, float]:
    """Return `d = mean_i (e_i - e'_i)` and its standard error over test samples, `√(var_i(e_i - e'_i) / n)`.

    `one` and `other` hold the numbers of the samples that are wrong, once for each seed; `e_i` is the share of the
    seeds that err on sample i. With one seed each this is McNemar's comparison: samples on which both err, or neither,
    tell nothing, and the error is `√(n₀₁ + n₁₀ - (n₁₀ - n₀₁)²/n) / n`.

    >>> error_difference([[0, 1, 2]], [[2, 3]], 100)
    (0.01, 0.01729...)
    """
    difference = _share(one, n_test) - _share(other, n_test)
    return difference.mean().item(), (difference.var(correction=0) / n_test).sqrt().item()


def _share(wrong: Sequence[Collection[int]], n_test: int) -> Tensor:
    if not wrong or any(not 0 <= i < n_test for numbers in wrong for i in numbers):
        raise ValueError(f"The numbers of wrong samples must be in 0..{n_test - 1}, of one seed at least. Got {wrong}.")
    share = torch.zeros(n_test, dtype=torch.float64)
    for numbers in wrong:
        share[list(numbers)] += 1 / len(wrong)
    return share
