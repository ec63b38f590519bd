"""Features and nats against their formulas, sparse and dense, weights and repetitions, pipelines."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, logsumexp
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import minmax_scale

from harmonium.learning.sparse_rows import SparseRows
from harmonium.sklearn import RBMTransformer
from harmonium.sklearn.columns import Columns


@pytest.fixture(scope="module")
def binary() -> np.ndarray:
    state = np.random.RandomState(0)
    return (state.rand(60, 5) < expit(3 * state.randn(60, 1))).astype(float)


def test_features_are_those_of_the_formula_and_of_bernoulli_rbm(binary: np.ndarray) -> None:
    ours = RBMTransformer(4, random_state=0).fit(binary)
    theirs = BernoulliRBM(4)
    for name in ("components_", "intercept_hidden_", "intercept_visible_"):
        setattr(theirs, name, getattr(ours, name))
    theirs.n_features_in_ = 5
    np.testing.assert_allclose(ours.transform(binary), theirs.transform(binary), rtol=1e-12)
    assert ours.components_.shape == (4, 5)
    assert RBMTransformer(4, random_state=0).get_params().keys() == BernoulliRBM().get_params().keys()


def test_scores_are_log_probabilities(binary: np.ndarray) -> None:
    """Over all 32 rows they add up to one; the pseudo-likelihood of BernoulliRBM does not."""
    rows = np.array(list(itertools.product([0.0, 1.0], repeat=5)))
    ours = RBMTransformer(4, random_state=0).fit(binary)
    assert ours.log_z().kind == "exact"
    assert logsumexp(ours.score_samples(rows)) == pytest.approx(0.0, abs=1e-9)
    theirs = BernoulliRBM(4, random_state=0).fit(binary)
    assert abs(logsumexp(theirs.score_samples(rows))) > 0.1


def test_real_columns_have_a_density_in_their_own_units() -> None:
    """One real column and one binary: the density integrates to one, whatever the units of the column."""
    state = np.random.RandomState(1)
    X = np.column_stack([40 + 7 * state.randn(200), state.rand(200) < 0.3])
    ours = RBMTransformer(3, n_iter=3, random_state=0).fit(X)
    grid = np.linspace(-40, 120, 4001)
    total = sum(np.exp(ours.score_samples(np.column_stack([grid, np.full_like(grid, b)]))).sum() for b in (0, 1))
    assert total * (grid[1] - grid[0]) == pytest.approx(1.0, abs=1e-6)
    features = expit(X @ ours.components_.T + ours.intercept_hidden_)
    machine = ours.machine_.hidden_mean(ours.columns_.encode(X)).detach().numpy()
    np.testing.assert_allclose(features, machine, atol=1e-5)
    np.testing.assert_allclose(ours.transform(X), features, rtol=1e-12)


def test_sparse_rows_are_the_same_rows_and_never_made_dense_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    state = np.random.RandomState(0)
    X = sp.random_array((1_000, 20_000), density=0.002, rng=0, format="csr")
    X.data[:] = 1.0
    sizes = []
    make_dense = SparseRows.rows

    def watched(self: SparseRows, index: Any) -> Any:
        sizes.append(len(index))
        return make_dense(self, index)

    monkeypatch.setattr(SparseRows, "rows", watched)
    monkeypatch.delattr(Columns, "encode")
    sparse = RBMTransformer(4, n_iter=1, random_state=0).fit(X)
    features = sparse.transform(X)
    assert max(sizes) * 20_000 <= 2**22
    monkeypatch.undo()
    few = X[:, state.permutation(20_000)[:30]]
    one = RBMTransformer(4, n_iter=2, random_state=0).fit(few).transform(few)
    other = RBMTransformer(4, n_iter=2, random_state=0).fit(few.toarray()).transform(few.toarray())
    np.testing.assert_allclose(one, other, atol=1e-6)
    assert features.shape == (1_000, 4)


def test_weights_count(binary: np.ndarray) -> None:
    """Whole weights are repetitions (scikit-learn's check); others move the machine towards the rows that have them."""
    half = np.where(binary[:, 0] == 1, 1.9, 0.3)
    plain, weighted = (
        RBMTransformer(4, n_iter=50, random_state=0).fit(binary, sample_weight=weights) for weights in (None, half)
    )
    assert weighted.intercept_visible_[0] > plain.intercept_visible_[0]
    shuffled = np.random.RandomState(3).permutation(len(binary))
    again = RBMTransformer(4, n_iter=50, random_state=0).fit(binary[shuffled])
    np.testing.assert_array_equal(again.components_, plain.components_)


def test_holes() -> None:
    """A column that copies another is filled in from it: features of rows with a hole are near those without."""
    state = np.random.RandomState(0)
    a = (state.rand(400, 1) < 0.5).astype(float)
    X = np.repeat(a, 6, axis=1)
    holed = np.where(state.rand(*X.shape) < 0.2, np.nan, X)
    ours = RBMTransformer(8, n_iter=20, random_state=0).fit(holed)
    test = np.repeat(np.array([[0.0], [1.0]]), 6, axis=1)
    with_hole = test.copy()
    with_hole[:, 2] = np.nan
    np.testing.assert_allclose(ours.transform(with_hole), ours.transform(test), atol=0.05)
    with pytest.raises(ValueError, match="needs all values"):
        ours.score_samples(with_hole)


def test_partial_fit_goes_on(binary: np.ndarray) -> None:
    ours = RBMTransformer(4, random_state=0)
    for _ in range(3):
        ours.partial_fit(binary)
    before = ours.components_
    assert not np.array_equal(ours.partial_fit(binary).components_, before)
    moved = ours.gibbs(binary)
    assert moved.shape == binary.shape and set(np.unique(moved)) <= {0.0, 1.0}


def test_in_a_pipeline_with_a_grid() -> None:
    X, y = load_digits(return_X_y=True)
    X = minmax_scale(X)[:300]
    pipe = Pipeline([("rbm", RBMTransformer(16, random_state=0)), ("classifier", LogisticRegression(max_iter=200))])
    search = GridSearchCV(pipe, {"rbm__n_components": [4, 32], "rbm__n_iter": [40]}, cv=2).fit(X, y[:300])
    assert search.best_params_["rbm__n_components"] == 32
    assert search.best_score_ > 0.5
    best = search.best_estimator_
    stored = pickle.loads(pickle.dumps(best))  # noqa: S301  (its own)
    np.testing.assert_array_equal(stored.predict(X), best.predict(X))
    np.testing.assert_array_equal(clone(best).fit(X, y[:300]).predict(X), best.predict(X))
    assert list(best["rbm"].get_feature_names_out()[:2]) == ["rbmtransformer0", "rbmtransformer1"]
    assert best["rbm"].set_output(transform="pandas").transform(X).columns[0] == "rbmtransformer0"
    assert "RBMTransformer" in best._repr_html_()


def test_errors_speak(binary: np.ndarray) -> None:
    with pytest.raises(ValueError, match="`n_components` must be a whole number"):
        RBMTransformer(0).fit(binary)
    with pytest.raises(ValueError, match="no value at all"):
        RBMTransformer(2).fit(np.column_stack([binary, np.full(len(binary), np.nan)]))
    with pytest.raises(ValueError, match="at least one non-zero"):
        RBMTransformer(2).fit(binary, sample_weight=np.zeros(len(binary)))
    with pytest.raises(ValueError, match="Sparse X must not hold NaN"):
        RBMTransformer(2).fit(sp.csr_array(np.where(binary == 1, np.nan, 0.0)))
