"""The estimators of tables and classes against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from harmonium.sklearn import BoltzmannDensity, BoltzmannImputer, BoltzmannOutlier


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """Rows of two correlated real columns in units of their own, and one of 0 and 1 that follows the first."""
    state = np.random.RandomState(0)
    x = state.multivariate_normal([50, -3], [[100, 9], [9, 1]], size=400)
    return np.column_stack([x, x[:, 0] + 3 * state.randn(400) > 50])


def test_one_component_is_a_gaussian(rows: np.ndarray) -> None:
    """With one component the density is the Gaussian of the columns: nats in their own units, holes integrated out."""
    x = rows[:, :2]
    ours = BoltzmannDensity(1, shrinkage=0.0, n_init=1, max_iter=1, random_state=0).fit(x)
    law = multivariate_normal(x.mean(0), np.cov(x.T, bias=True))
    np.testing.assert_allclose(ours.score_samples(x[:50]), law.logpdf(x[:50]), atol=0.1)
    hole = x[:50].copy()
    hole[:, 1] = np.nan
    alone = multivariate_normal(x[:, 0].mean(), x[:, 0].var())
    np.testing.assert_allclose(ours.score_samples(hole), alone.logpdf(x[:50, 0]), atol=0.1)
    assert ours.score(x) == pytest.approx(law.logpdf(x).mean(), abs=0.05)


def test_a_density_integrates_to_one_and_is_drawn_from(rows: np.ndarray) -> None:
    ours = BoltzmannDensity(3, shrinkage=0.1, n_init=1, max_iter=5, random_state=0).fit(rows)
    a, b = np.meshgrid(np.linspace(-30, 130, 161), np.linspace(-11, 5, 161), indexing="ij")
    plane = np.column_stack([a.ravel(), b.ravel()])
    total = sum(np.exp(ours.score_samples(np.column_stack([plane, np.full(len(plane), k)]))).sum() for k in (0, 1))
    assert total * 1.0 * 0.1 == pytest.approx(1.0, abs=1e-3)
    drawn = ours.sample(4000, random_state=1)
    assert set(np.unique(drawn[:, 2])) == {0.0, 1.0}
    error = 5 * rows.std(0) / 4000**0.5
    assert (np.abs(drawn.mean(0) - rows.mean(0)) < error + 0.05 * rows.std(0)).all()
    assert ours.score_samples(np.array([[50.0, -3.0, 2.0]]))[0] == -np.inf  # a value that cannot be


def test_imputation_is_the_conditional_mean(rows: np.ndarray) -> None:
    x = rows[:, :2]
    ours = BoltzmannImputer(1, shrinkage=0.0, n_init=1, max_iter=1, random_state=0).fit(x)
    hole = x[:60].copy()
    hole[:, 1] = np.nan
    covariance = np.cov(x.T, bias=True)
    expected = x[:, 1].mean() + covariance[0, 1] / covariance[0, 0] * (x[:60, 0] - x[:, 0].mean())
    width = (covariance[1, 1] - covariance[0, 1] ** 2 / covariance[0, 0]) ** 0.5
    filled = ours.transform(hole)
    np.testing.assert_array_equal(filled[:, 0], x[:60, 0])
    assert np.abs(filled[:, 1] - expected).max() < 6 * width / 10 + 0.05  # over 100 draws
    drawn = ours.set_params(sample_posterior=True).transform(np.repeat(hole[:1], 500, axis=0))[:, 1]
    assert drawn.std() == pytest.approx(width, rel=0.2)
    binary = BoltzmannImputer(4, shrinkage=0.1, n_init=1, max_iter=1, random_state=0).fit(rows)
    low, high = binary.transform(np.array([[20.0, -6.0, np.nan], [80.0, 0.0, np.nan]]))[:, 2]
    assert (low, high) == (0.0, 1.0)


def test_outliers(rows: np.ndarray) -> None:
    ours = BoltzmannOutlier(1, contamination=0.1, shrinkage=0.0, n_init=1, max_iter=1, random_state=0).fit(rows)
    assert (ours.predict(rows) == -1).sum() == 40
    strange = np.array([[50.0, 3.0, 1.0], [50.0, np.nan, 1.0]])  # far off the line that the columns lie on
    assert ours.predict(strange).tolist() == [-1, 1]
    with pytest.raises(ValueError, match="contamination"):
        BoltzmannOutlier(contamination=0.9).fit(rows)


def test_a_pipeline_with_holes_and_a_grid() -> None:
    X, y = load_iris(return_X_y=True)
    holed = np.where(np.random.RandomState(0).rand(*X.shape) < 0.1, np.nan, X)
    imputer = BoltzmannImputer(3, shrinkage=0.1, n_init=1, max_iter=1, random_state=0)
    pipe = make_pipeline(imputer, LogisticRegression(max_iter=500))
    assert cross_val_score(pipe, holed, y, cv=2).mean() > 0.85
    density = BoltzmannDensity(shrinkage=0.1, n_init=1, max_iter=1, random_state=0)
    grid = GridSearchCV(density, {"n_components": [1, 3]}, cv=KFold(2, shuffle=True, random_state=0))
    assert grid.fit(X).best_params_["n_components"] == 3


def test_columns_of_text_are_refused_with_a_way_on(rows: np.ndarray) -> None:
    mixed = np.column_stack([rows[:9].astype(object), ["Adelie"] * 9])
    with pytest.raises(ValueError, match="X must be numbers: could not convert string to float: 'Adelie'. Encode"):
        BoltzmannImputer(2, n_init=1, max_iter=1).fit(mixed)
