"""scikit-learn's BernoulliRBM."""

from __future__ import annotations

import numpy as np

from benchmarks.runner import Contender


def epoch(x: np.ndarray, n_hidden: int, batch_size: int) -> Contender:
    """Return one epoch of `fit`."""
    from sklearn.neural_network import BernoulliRBM

    def run() -> None:
        BernoulliRBM(n_components=n_hidden, batch_size=batch_size, n_iter=1, random_state=0).fit(x)

    note = (
        "`BernoulliRBM.fit` on float32 rows: persistent chains with one step (PCD-1), not CD-1, the same five "
        "products; never shuffles; no monitors; the rows are float32 before the clock starts"
    )
    return Contender("scikit-learn", run, note)


def gibbs(weight: np.ndarray, b: np.ndarray, c: np.ndarray, start: np.ndarray, n_steps: int) -> Contender:
    """Return `n_steps` calls of `gibbs`; `weight` is visible × hidden."""
    from sklearn.neural_network import BernoulliRBM

    model = BernoulliRBM(n_components=weight.shape[1], random_state=0)
    model.components_ = np.asarray(weight.T, order="F")
    model.intercept_hidden_, model.intercept_visible_ = c, b

    def run() -> None:
        v = start
        for _ in range(n_steps):
            v = model.gibbs(v)

    return Contender("scikit-learn", run, "`BernoulliRBM.gibbs` in a loop; its states are booleans")
