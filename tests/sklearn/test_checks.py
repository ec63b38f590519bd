"""All of scikit-learn's own checks, for every estimator; none is skipped, none is expected to fail."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import harmonium.sklearn
from harmonium.sklearn import (
    BoltzmannDensity,
    BoltzmannImputer,
    BoltzmannOutlier,
    ClassRBMClassifier,
    DBNTransformer,
    JEMClassifier,
    RBMTransformer,
)

ESTIMATORS = [
    BoltzmannDensity(2, shrinkage=0.3, n_init=1, max_iter=1),
    BoltzmannImputer(2, shrinkage=0.3, n_init=1, max_iter=1),
    BoltzmannOutlier(2, shrinkage=0.3, n_init=1, max_iter=1),
    RBMTransformer(n_components=8, n_iter=2),
    ClassRBMClassifier(8, max_iter=60, learning_rate=0.05),
    DBNTransformer((6, 4), max_iter=5),
    JEMClassifier((16,), n_steps=1, max_iter=20, learning_rate=0.05),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator: Any, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # without it one check is skipped
    check(estimator)


def test_every_estimator_is_checked() -> None:
    assert {type(estimator).__name__ for estimator in ESTIMATORS} == set(harmonium.sklearn.__all__)
