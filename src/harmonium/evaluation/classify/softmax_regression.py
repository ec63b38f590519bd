"""A linear classifier in one call."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

Split = tuple[Tensor, Tensor]
"""Features `(n, n_features)` and labels `(n,)`."""


def softmax_regression(train: Split, held_out: Split, *, decay: float = 1e-4, n_steps: int = 150) -> Tensor:
    """Return the classes that softmax regression gives to held-out features, fitted on `train` by L-BFGS.

    Features are standardized by the moments of `train`; the loss is the mean of `-log p(y | x)` plus `decay · ‖W‖²`.
    """
    mean, std = train[0].mean(0), train[0].std(0).clamp_min(1e-3)
    x, labels = (train[0] - mean) / std, train[1]
    n_classes = int(torch.cat([labels, held_out[1]]).max()) + 1
    weight = x.new_zeros(x.shape[1], n_classes, requires_grad=True)
    bias = x.new_zeros(n_classes, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=n_steps, line_search_fn="strong_wolfe")

    @torch.enable_grad()
    def closure() -> Tensor:
        weight.grad = bias.grad = None
        loss = cross_entropy(x @ weight + bias, labels) + decay * weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        return ((held_out[0] - mean) / std @ weight + bias).argmax(1)
