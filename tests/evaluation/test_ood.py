"""Detection scores against scikit-learn's ROC curve, ties included, and hand cases."""

from __future__ import annotations

import math

import pytest
import torch
from sklearn.metrics import roc_auc_score, roc_curve
from torch import Tensor

from harmonium.evaluation.ood import auroc, auroc_error, fpr95


def scores(kind: str, n: int, m: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n + m)
    inside = torch.randn(n, generator=generator) + 1
    outside = torch.randn(m, generator=generator)
    return (inside.round(), outside.round()) if kind == "tied" else (inside, outside)


@pytest.mark.parametrize(("n", "m"), [(300, 200), (20, 33), (19, 5), (1, 1), (41, 100)])
@pytest.mark.parametrize("kind", ["continuous", "tied"])
def test_equal_to_scikit_learn(kind: str, n: int, m: int) -> None:
    inside, outside = scores(kind, n, m)
    truth = torch.cat([torch.ones(n), torch.zeros(m)]).numpy()
    both = torch.cat([inside, outside]).numpy()
    assert auroc(inside, outside) == pytest.approx(roc_auc_score(truth, both), rel=1e-12)
    false, true, _ = roc_curve(truth, both, drop_intermediate=False)
    assert fpr95(inside, outside) == pytest.approx(false[true >= 0.95 - 1e-12].min(), rel=1e-12)


def test_by_hand() -> None:
    low, high = torch.arange(3.0), torch.arange(10.0, 15.0)
    assert (auroc(high, low), fpr95(high, low)) == (1.0, 0.0)
    assert (auroc(low, high), fpr95(low, high)) == (0.0, 1.0)  # the score points the wrong way
    assert (auroc(torch.zeros(4), torch.zeros(7)), fpr95(torch.zeros(4), torch.zeros(7))) == (0.5, 1.0)
    assert auroc(torch.tensor([math.inf, 0.0]), torch.tensor([-math.inf, 0.0])) == 0.875


def test_only_the_order_counts() -> None:
    inside, outside = scores("tied", 50, 60)
    assert auroc(inside.exp(), outside.exp()) == auroc(inside, outside)
    assert fpr95(inside.exp(), outside.exp()) == fpr95(inside, outside)
    assert auroc(-inside, -outside) == pytest.approx(1 - auroc(inside, outside), rel=1e-12)


def test_area_between_normal_scores() -> None:
    # N(1,1) against N(0,1): Φ(1/√2). The variance of the area is at most A(1-A)/min(n, m); 5 roots of it: below 1e-6
    generator = torch.Generator().manual_seed(3)
    n = 20_000
    area = 0.5 * (1 + math.erf(0.5))
    error = math.sqrt(area * (1 - area) / n)
    inside, outside = torch.randn(n, generator=generator) + 1, torch.randn(n, generator=generator)
    assert abs(auroc(inside, outside) - area) < 5 * error
    assert abs(auroc(inside + 0.2, outside) - area) > 5 * error


@pytest.mark.parametrize("function", [auroc, fpr95])
def test_errors_say_what_to_do(function: object) -> None:
    assert callable(function)
    good = torch.zeros(3)
    for bad in (torch.zeros(3, 1), torch.zeros(0)):
        with pytest.raises(ValueError, match=r"scores_out.*Got"):
            function(good, bad)
    with pytest.raises(ValueError, match=r"scores_in.*NaN"):
        function(good * math.nan, good)


def test_the_error_of_auroc_is_that_of_repeats(generator: torch.Generator) -> None:
    """The spread of AUROC over 400 pairs of samples is what the error says, within five standard errors of a spread."""
    values, errors = [], []
    for _ in range(400):
        inside, outside = torch.randn(60, generator=generator) + 1, torch.randn(90, generator=generator)
        values.append(auroc(inside, outside))
        errors.append(auroc_error(inside, outside))
    spread = torch.tensor(values).std().item()
    assert torch.tensor(errors).mean().item() == pytest.approx(spread, rel=5 / math.sqrt(2 * 400))
    assert auroc_error(torch.tensor([2.0, 3.0]), torch.tensor([0.0, 1.0])) == 0.0
