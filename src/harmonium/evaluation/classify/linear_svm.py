"""The linear support vector machine, by whole-matrix products."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_ROWS = 64


@dataclass(frozen=True, eq=False)
class LinearSVM:
    """A linear classifier `argmax_y (xᵀw_y + b_y)` with one `weight` column and one `bias` a class."""

    weight: Tensor
    bias: Tensor
    cost: float

    def decision(self, x: Tensor) -> Tensor:
        """Return `xᵀw_y + b_y` for each class, `(n, n_classes)`."""
        return x @ self.weight + self.bias

    def predict(self, x: Tensor) -> Tensor:
        """Return the class of each row."""
        return self.decision(x).argmax(1)


def fit_linear_svm(
    x: Tensor,
    labels: Tensor,
    *,
    cost: float,
    n_classes: int | None = None,
    start: LinearSVM | None = None,
    max_iterations: int = 200,
    tolerance: float = 1e-6,
) -> LinearSVM:
    """Minimize `½‖w_y‖² + ½b_y² + C Σ_i max(0, 1 - t_iy (x_iᵀw_y + b_y))²` for each class y, t_iy = 1 or -1.

    The objective of scikit-learn's `LinearSVC(C=cost)`, one class against the rest with the squared hinge and the bias
    as one more weight, so the minimum is the same one. All classes go together through L-BFGS, where each pass reads
    the matrix once: a few rows stay in the cache for both of their products. Features should have similar scales.
    `start` is a machine to begin from, such as that of another cost.
    """
    if x.ndim != 2 or labels.shape != x.shape[:1] or labels.is_floating_point():
        raise ValueError(
            f"`x` must be (n, n_features) and `labels` (n,) class numbers. Got {tuple(x.shape)} and "
            f"{labels.dtype} {tuple(labels.shape)}."
        )
    if not cost > 0:
        raise ValueError(f"`cost` must be positive. Got {cost}. It weighs the errors against the norm of the weights.")
    n_classes = int(labels.max()) + 1 if n_classes is None else n_classes
    sign = x.new_full((len(x), n_classes), -1.0)
    sign[torch.arange(len(x)), labels] = 1.0
    weight = x.new_zeros(x.shape[1], n_classes) if start is None else start.weight.clone()
    bias = x.new_zeros(n_classes) if start is None else start.bias.clone()
    weight.grad, bias.grad = torch.zeros_like(weight), torch.zeros_like(bias)
    optimizer = torch.optim.LBFGS(
        [weight, bias],
        max_iter=max_iterations,
        history_size=20,
        tolerance_grad=0.0,
        tolerance_change=tolerance,
        line_search_fn="strong_wolfe",
    )
    # Divided by the number of rows and the cost, so that the numbers are of order one.
    decay = 1.0 / (2.0 * cost * len(x))

    @torch.no_grad()
    def closure() -> Tensor:
        loss, slope, total = x.new_zeros(()), x.new_zeros(n_classes, x.shape[1]), x.new_zeros(n_classes)
        for rows, signs in zip(x.split(_ROWS), sign.split(_ROWS), strict=True):
            slack = torch.addmm(bias, rows, weight).mul_(signs).neg_().add_(1).clamp_min_(0)
            loss += slack.square().sum()
            slack.mul_(signs)
            slope.addmm_(slack.t(), rows)
            total += slack.sum(0)
        torch.add(2 * decay * weight, slope.t(), alpha=-2.0 / len(x), out=weight.grad)
        torch.add(2 * decay * bias, total, alpha=-2.0 / len(x), out=bias.grad)
        return loss / len(x) + decay * (weight.square().sum() + bias.square().sum())

    optimizer.step(closure)
    return LinearSVM(weight.detach(), bias.detach(), cost)
