"""Classifiers where the truth is known, and in a pipeline with holes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from harmonium.sklearn import BoltzmannImputer, ClassRBMClassifier, JEMClassifier

CLASSIFIERS = [
    ClassRBMClassifier(8, max_iter=300, random_state=0),
    JEMClassifier((16,), n_steps=2, max_iter=200, learning_rate=0.01, random_state=0),
]


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=lambda found: type(found).__name__)
def test_probabilities_where_the_truth_is_known(classifier: Any) -> None:
    """Two Gaussian classes one apart on the line: p(y | x) is the logistic function of x."""
    state = np.random.RandomState(0)
    y = state.randint(0, 2, size=2000)
    X = (state.randn(2000) + y - 0.5)[:, None]
    points = np.linspace(-2, 2, 9)[:, None]
    found = classifier.fit(X, y).predict_proba(points)
    np.testing.assert_allclose(found.sum(1), 1.0)
    np.testing.assert_allclose(found[:, 1], 1 / (1 + np.exp(-points[:, 0])), atol=0.15)
    named = classifier.fit(X, np.where(y == 1, "high", "low"))
    assert named.predict(np.array([[3.0], [-3.0]])).tolist() == ["high", "low"]
    with pytest.raises(ValueError, match="at least 2 classes"):
        classifier.fit(X, np.zeros(2000))


def test_holes_in_a_pipeline() -> None:
    X, y = load_iris(return_X_y=True)
    holed = np.where(np.random.RandomState(0).rand(*X.shape) < 0.1, np.nan, X)
    imputer = BoltzmannImputer(3, shrinkage=0.1, n_init=1, max_iter=1, random_state=0)
    classifier = ClassRBMClassifier(16, max_iter=200, random_state=0)
    assert cross_val_score(make_pipeline(imputer, classifier), holed, y, cv=2).mean() > 0.85
    assert classifier.fit(holed, y).score(holed, y) > 0.85  # alone, at the means of the columns
