"""Do predicted probabilities mean what they say: reliability bins and the expected calibration error."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Reliability:
    """The bins of confidence that hold samples, in increasing order; every field is `(n_occupied,)`.

    Bin i covers `(lower, upper]`, holds `count` samples, whose mean `confidence` would equal their `accuracy` if the
    model were calibrated. Empty bins are left out, since they have neither.
    """

    lower: Tensor
    upper: Tensor
    count: Tensor
    confidence: Tensor
    accuracy: Tensor


def expected_calibration_error(probabilities: Tensor, labels: Tensor, n_bins: int = 15) -> float:
    """Expected calibration error `Σ_b |B_b|/n · |acc(B_b) - conf(B_b)|`, eq. 5 of Guo et al. 2017.

    It is zero for a calibrated model with infinitely many samples; a finite sample adds a positive bias that grows with
    `n_bins`, so compare models on the same number of samples and bins.

    >>> expected_calibration_error(torch.tensor([[0.75, 0.25]] * 4), torch.tensor([0, 0, 0, 1]))
    0.0
    """
    bins = reliability(probabilities, labels, n_bins)
    gap = (bins.accuracy - bins.confidence).abs()
    return ((bins.count * gap).sum() / bins.count.sum()).item()


def reliability(probabilities: Tensor, labels: Tensor, n_bins: int = 15) -> Reliability:
    """Accuracy and mean confidence of the samples whose confidence `max_y p(y|x)` falls in each of `n_bins` equal bins.

    Eqs. 3 and 4 of Guo et al., "On calibration of modern neural networks" (2017). `probabilities` is `(n, n_classes)`,
    `labels` is `(n,)`; a tie between classes is a prediction of the first of them.

    >>> reliability(torch.tensor([[0.9, 0.1], [0.7, 0.3]]), torch.tensor([0, 1]), n_bins=2).accuracy
    tensor([0.5000], dtype=torch.float64)
    """
    _check(probabilities, labels, n_bins)
    confidence, prediction = probabilities.detach().to(torch.float64).max(-1)
    correct = (prediction == labels).to(torch.float64)
    edges = torch.linspace(0, 1, n_bins + 1, dtype=torch.float64, device=confidence.device)
    index = torch.bucketize(confidence, edges[1:-1])
    count = torch.bincount(index, minlength=n_bins)
    occupied = count > 0
    mean_confidence = torch.bincount(index, confidence, n_bins)[occupied] / count[occupied]
    accuracy = torch.bincount(index, correct, n_bins)[occupied] / count[occupied]
    return Reliability(edges[:-1][occupied], edges[1:][occupied], count[occupied], mean_confidence, accuracy)


def _check(probabilities: Tensor, labels: Tensor, n_bins: int) -> None:
    if n_bins < 1:
        raise ValueError(f"`n_bins` must be at least 1. Got {n_bins}. 15 is customary.")
    if probabilities.ndim != 2 or probabilities.shape[0] < 1 or labels.shape != probabilities.shape[:1]:
        raise ValueError(
            "`probabilities` must have shape (n, n_classes) and `labels` (n,). "
            f"Got {tuple(probabilities.shape)} and {tuple(labels.shape)}. "
            "For the probability p of one of two classes, pass torch.stack([1 - p, p], dim=-1)."
        )
    if labels.is_floating_point() or labels.is_complex():
        raise TypeError(f"`labels` must be class numbers. Got {labels.dtype}. Convert them with labels.long().")
    n_classes = probabilities.shape[1]
    if labels.min() < 0 or labels.max() >= n_classes:
        raise ValueError(
            f"`labels` must lie in 0..{n_classes - 1} to match {n_classes} columns of `probabilities`. "
            f"Got {labels.min().item()}..{labels.max().item()}. Number the classes from 0."
        )
    off = (probabilities.sum(-1) - 1).abs().max().item()
    if not off <= 1e-3 or probabilities.min() < 0:
        raise ValueError(
            "Each row of `probabilities` must be non-negative and sum to 1. "
            f"Got a smallest entry of {probabilities.min().item():.3g} and a sum off by {off:.3g}. "
            "If these are logits, pass logits.softmax(-1)."
        )
