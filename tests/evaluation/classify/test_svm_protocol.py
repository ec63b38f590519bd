"""The support vector machine and the protocol around it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from sklearn.svm import SVC, LinearSVC

from harmonium.evaluation.classify.linear_svm import fit_linear_svm
from harmonium.evaluation.classify.svm_protocol import Classification, predict_rbf, svm_protocol

Draw = Callable[[int, int], tuple[torch.Tensor, torch.Tensor]]


def blobs(n: int, seed: int, spread: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return points around three corners of a triangle in five dimensions, and their corners."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(3, (n,), generator=generator)
    centers = 2 * torch.eye(3, 5)
    return centers[labels] + spread * torch.randn(n, 5, generator=generator), labels


def rings(n: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return points on two circles: no line parts them."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(2, (n,), generator=generator)
    angle = 2 * torch.pi * torch.rand(n, generator=generator)
    radius = 1 + labels + 0.1 * torch.randn(n, generator=generator)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), labels


@pytest.mark.parametrize("cost", [1e-3, 1e-1, 10.0])
def test_the_minimum_is_that_of_scikit_learn(cost: float) -> None:
    x, labels = blobs(300, 0)
    ours = fit_linear_svm(x.double(), labels, cost=cost, max_iterations=2000, tolerance=1e-14)
    theirs = LinearSVC(C=cost, dual=False, tol=1e-10, max_iter=100_000).fit(x.double().numpy(), labels.numpy())
    assert np.allclose(ours.weight.T.numpy(), theirs.coef_, atol=1e-4)
    assert np.allclose(ours.bias.numpy(), theirs.intercept_, atol=1e-4)
    other = fit_linear_svm(x.double(), labels, cost=3 * cost, max_iterations=2000, tolerance=1e-14)
    assert not np.allclose(other.weight.T.numpy(), theirs.coef_, atol=1e-4)


def test_the_test_set_decides_nothing() -> None:
    train, valid, test = blobs(300, 0), blobs(200, 1), blobs(200, 2)
    result = svm_protocol(train, valid, test)
    shuffled = svm_protocol(train, valid, (test[0], test[1].roll(1)))
    assert (result.cost, result.valid_errors) == (shuffled.cost, shuffled.valid_errors)
    assert result.error < 0.25 < 0.5 < shuffled.error
    assert len(result.wrong) == round(200 * result.error) and max(result.wrong) < 200
    assert result.n_train == 500


def test_a_kernel_parts_rings_and_a_line_does_not() -> None:
    splits = rings(300, 0), rings(200, 1), rings(200, 2)
    assert svm_protocol(*splits, kernel="rbf", costs=(1.0, 10.0), width=2.0).error < 0.02
    assert svm_protocol(*splits).error > 0.3


@pytest.mark.parametrize("draw", [blobs, rings])
def test_the_classes_are_those_that_scikit_learn_gives(draw: Draw) -> None:
    (x, labels), (other, _) = draw(300, 0), draw(1500, 1)
    machine = SVC(C=3.0, gamma=0.3).fit(x.double().numpy(), labels.numpy())
    rows = other.double().numpy()
    predicted = machine.predict(rows)
    assert np.array_equal(predict_rbf(machine, rows).numpy(), predicted)
    machine.intercept_ += 2.0
    assert not np.array_equal(predict_rbf(machine, rows).numpy(), predicted)


def test_the_standard_error_is_binomial() -> None:
    result = Classification(0.1, 900, 10, "linear", 1.0, {1.0: 0.1})
    assert result.standard_error == pytest.approx(0.01)
    assert result.as_record()["valid_errors"] == {"1": 0.1}


def test_wrong_settings() -> None:
    train = blobs(30, 0)
    with pytest.raises(ValueError, match="kernel"):
        svm_protocol(train, train, train, kernel="poly")
    with pytest.raises(ValueError, match="cost"):
        svm_protocol(train, train, train, costs=())
    with pytest.raises(ValueError, match="cost"):
        fit_linear_svm(*train, cost=0.0)
    with pytest.raises(ValueError, match="labels"):
        fit_linear_svm(train[0], train[1].float(), cost=1.0)
