"""Can a score tell data from what is not: AUROC and the false-positive rate at 95 % recall.

A larger score means more like the data: `-model.free_energy(x)`, a log-likelihood, the largest class probability.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def auroc(scores_in: Tensor, scores_out: Tensor) -> float:
    """Area under the ROC curve: `P(s_in > s_out) + ½ P(s_in = s_out)`, the Mann-Whitney statistic over n·m.

    1 separates perfectly, ½ is chance, below ½ the score points the wrong way (Hendrycks and Gimpel 2017).

    >>> auroc(torch.tensor([2.0, 1.0]), torch.tensor([1.0, 0.0]))
    0.875
    """
    inside, outside = _scores(scores_in, "scores_in"), _scores(scores_out, "scores_out")
    ordered = outside.sort().values
    below = torch.searchsorted(ordered, inside).sum()
    not_above = torch.searchsorted(ordered, inside, right=True).sum()
    return (below + not_above).item() / (2 * len(inside) * len(outside))


def auroc_error(scores_in: Tensor, scores_out: Tensor) -> float:
    """Standard error of `auroc` over both samples: `√(Var[v]/n + Var[w]/m)` (DeLong, DeLong and Clarke-Pearson 1988).

    `v_i` is the share of outliers below sample i, `w_j` the share of samples above outlier j, ties count half.

    >>> round(auroc_error(torch.tensor([3.0, 1.0]), torch.tensor([2.0, 0.0])), 4)
    0.3536
    """
    inside, outside = _scores(scores_in, "scores_in"), _scores(scores_out, "scores_out")
    variance = 0.0
    for these, those in ((inside, outside), (outside, inside)):
        ordered = those.sort().values
        below = torch.searchsorted(ordered, these) + torch.searchsorted(ordered, these, right=True)
        if len(these) > 1:
            variance += (below.double() / (2 * len(those))).var().item() / len(these)
    return math.sqrt(variance)


def fpr95(scores_in: Tensor, scores_out: Tensor) -> float:
    """Share of `scores_out` at or above the largest threshold that at least 95 % of `scores_in` reach; lower is better.

    "FPR at 95 % TPR" of Liang et al. 2018: the outliers taken for data when 95 % of the data are let through.

    >>> fpr95(torch.arange(1.0, 21.0), torch.tensor([0.0, 1.5, 2.0, 30.0]))
    0.5
    """
    inside, outside = _scores(scores_in, "scores_in"), _scores(scores_out, "scores_out")
    n_kept = (95 * len(inside) + 99) // 100  # the ceiling of 0.95 n, in integers
    threshold = inside.sort(descending=True).values[n_kept - 1]
    return (outside >= threshold).sum().item() / len(outside)


def _scores(scores: Tensor, name: str) -> Tensor:
    if scores.ndim != 1 or len(scores) < 1:
        raise ValueError(
            f"`{name}` must have shape (n,) with n at least 1. Got {tuple(scores.shape)}. One score for each sample."
        )
    if scores.isnan().any():
        raise ValueError(f"`{name}` must not hold NaN. Got {int(scores.isnan().sum())}. Check the model that scored.")
    return scores.detach().to(torch.float64)
