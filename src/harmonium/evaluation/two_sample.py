"""Do two samples come from one law: maximum mean discrepancy, energy distance, and a permutation test of either.

Points are `(n, *shape)`; everything is computed in float64 from the matrix of pairwise distances, which takes
`8 (n + m)²` bytes: 128 MB for 4000 points in all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.draws import draw_permutation

_BLOCK = 64  # permutations evaluated together

Statistic = Callable[[Tensor, Tensor], Tensor | float]
"""A number that is larger the more two samples differ."""


@dataclass(frozen=True)
class PermutationTest:
    """The observed statistic and `p_value`, the chance of one at least as large if both samples had the same law."""

    statistic: float
    p_value: float


def maximum_mean_discrepancy(x: Tensor, y: Tensor) -> float:
    """Unbiased squared MMD: `mean_{i≠j} k(x_i, x_j) + mean_{i≠j} k(y_i, y_j) - 2 mean_{ij} k(x_i, y_j)`.

    Eq. 3 of Gretton et al., "A kernel two-sample test" (2012), with `k(a, b) = exp(-|a - b|² / 2σ²)` and σ the median
    of the positive distances between the points of both samples. Zero on average for equal laws: it can be negative.

    >>> maximum_mean_discrepancy(torch.zeros(3, 2), torch.zeros(4, 2))
    0.0
    """
    x, y = as_points(x, y)
    return _kernel_contrast(_gaussian_kernel(torch.cat([x, y])), _members(len(x), len(y), x.device)).item()


def energy_distance(x: Tensor, y: Tensor) -> float:
    """Squared energy distance of the two samples: `2 mean |x_i - y_j| - mean |x_i - x_j| - mean |y_i - y_j|`.

    Eq. 6.1 of Székely and Rizzo, "Energy statistics" (2013). All pairs count, i = j too: it is the distance between the
    two empirical laws, zero only if they are equal, and on the line `2 ∫ (F(t) - G(t))² dt`.

    >>> round(energy_distance(torch.tensor([[0.0], [0.0]]), torch.tensor([[1.0], [1.0]])), 6)
    2.0
    """
    x, y = as_points(x, y)
    return _distance_contrast(_distances(torch.cat([x, y])), _members(len(x), len(y), x.device)).item()


def permutation_test(
    statistic: Statistic,
    x: Tensor,
    y: Tensor,
    *,
    n_permutations: int = 999,
    generator: torch.Generator | None = None,
) -> PermutationTest:
    """Compare `statistic(x, y)` with its values when the points are dealt anew: `p = (1 + #{s_π ≥ s}) / (1 + n)`.

    Under equal laws `P(p ≤ α) ≤ α` exactly, for any sample size (Phipson and Smyth 2010). The pairwise matrix of
    `maximum_mean_discrepancy` and `energy_distance` is computed once; another callable is called for each permutation.

    >>> generator = torch.Generator().manual_seed(0)
    >>> x = torch.linspace(0, 1, 50)[:, None]
    >>> permutation_test(energy_distance, x, x + 5, n_permutations=99, generator=generator).p_value
    0.01
    """
    if n_permutations < 1:
        raise ValueError(f"`n_permutations` must be at least 1. Got {n_permutations}. 999 resolves p-values to 0.001.")
    observed = float(statistic(x, y))
    dealt, scale = _permuted(statistic, x, y, n_permutations, generator)
    if not dealt.isfinite().all() or observed != observed:
        raise ValueError(
            "`statistic` must be finite on every permutation. Got NaN or infinity. "
            "Check that it is defined for any two samples of these sizes."
        )
    rounding = 1e-12 * (abs(observed) if scale is None else scale)  # values that differ by rounding only are ties
    as_large = int((dealt >= observed - rounding).sum())
    return PermutationTest(observed, (1 + as_large) / (1 + n_permutations))


def permuted_values(
    statistic: Statistic, x: Tensor, y: Tensor, n_permutations: int, *, generator: torch.Generator | None = None
) -> Tensor:
    """Return the statistic of the points of both samples dealt anew, `n_permutations` times, in float64."""
    return _permuted(statistic, x, y, n_permutations, generator)[0]


def _permuted(
    statistic: Statistic, x: Tensor, y: Tensor, n_permutations: int, generator: torch.Generator | None
) -> tuple[Tensor, float | None]:
    """Return the permuted values, and the size of the numbers that they are differences of, where it is known."""
    n, m = len(x), len(y)
    if statistic not in _PAIRWISE:
        pooled = torch.cat([x, y])
        orders = [draw_permutation(n + m, generator=generator).to(x.device) for _ in range(n_permutations)]
        return torch.tensor([float(statistic(pooled[o[:n]], pooled[o[n:]])) for o in orders], dtype=torch.float64), None
    x, y = as_points(x, y)
    matrix_of, contrast = _PAIRWISE[statistic]
    matrix = matrix_of(torch.cat([x, y]))
    values = []
    for start in range(0, n_permutations, _BLOCK):
        n_columns = min(_BLOCK, n_permutations - start)
        order = torch.stack([draw_permutation(n + m, generator=generator)[:n] for _ in range(n_columns)], dim=1)
        members = matrix.new_zeros(n + m, n_columns).scatter_(0, order.to(x.device), 1.0)
        values.append(contrast(matrix, members))
    return torch.cat(values), matrix.mean().item()


def as_points(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Check both samples and return them as float64 `(n, d)` and `(m, d)`."""
    for name, points in (("x", x), ("y", y)):
        if points.ndim < 1 or len(points) < 2:
            raise ValueError(
                f"`{name}` must hold at least 2 points, as (n, *shape). Got {tuple(points.shape)}. Draw more."
            )
        if not points.isfinite().all():
            raise ValueError(f"`{name}` must be finite. Got NaN or infinite values. Drop those points, and say so.")
    if x.shape[1:] != y.shape[1:]:
        raise ValueError(
            f"`x` and `y` must hold points of one shape. Got {tuple(x.shape[1:])} and {tuple(y.shape[1:])}. "
            "Reshape one of them."
        )
    return x.detach().to(torch.float64).reshape(len(x), -1), y.detach().to(torch.float64).reshape(len(y), -1)


def _members(n: int, m: int, device: torch.device) -> Tensor:
    """One column that is 1 for the n points of x and 0 for the m points of y."""
    return (torch.arange(n + m, device=device) < n).to(torch.float64)[:, None]


def _distances(points: Tensor) -> Tensor:
    # the matrix-product shortcut would leave 1e-8 where two points are equal
    return torch.cdist(points, points, compute_mode="donot_use_mm_for_euclid_dist")


def _gaussian_kernel(points: Tensor) -> Tensor:
    """Kernel matrix with a zero diagonal, which the unbiased estimate leaves out."""
    distance = _distances(points)
    n_zero = int((distance == 0).sum())
    n_positive = distance.numel() - n_zero
    sigma = distance.flatten().kthvalue(n_zero + n_positive // 2).values if n_positive else distance.new_tensor(1.0)
    kernel = distance.div_(sigma).square_().mul_(-0.5).exp_()
    kernel.fill_diagonal_(0.0)
    return kernel


def _sums(matrix: Tensor, members: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sums of a symmetric matrix over x-x, y-y and x-y pairs, for each column of 0/1 `members`."""
    others = 1 - members
    to_x = matrix @ members
    to_y = matrix.sum(1, keepdim=True) - to_x
    return (members * to_x).sum(0), (others * to_y).sum(0), (others * to_x).sum(0)


def _kernel_contrast(matrix: Tensor, members: Tensor) -> Tensor:
    n = members.sum(0)
    m = len(members) - n
    xx, yy, xy = _sums(matrix, members)
    return xx / (n * (n - 1)) + yy / (m * (m - 1)) - 2 * xy / (n * m)


def _distance_contrast(matrix: Tensor, members: Tensor) -> Tensor:
    n = members.sum(0)
    m = len(members) - n
    xx, yy, xy = _sums(matrix, members)
    return 2 * xy / (n * m) - xx / n**2 - yy / m**2


_Pairwise = tuple[Callable[[Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]
_PAIRWISE: dict[Statistic, _Pairwise] = {
    maximum_mean_discrepancy: (_gaussian_kernel, _kernel_contrast),
    energy_distance: (_distances, _distance_contrast),
}
