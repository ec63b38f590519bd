"""A restricted Boltzmann machine that classifies."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch

from harmonium.learning.objectives import Hybrid
from harmonium.learning.starts import initialize
from harmonium.models import ClassRBM
from harmonium.sklearn.base import as_rows, in_blocks, learn, n_start, source
from harmonium.sklearn.classifier import HarmoniumClassifier
from harmonium.units import Bernoulli


class ClassRBMClassifier(HarmoniumClassifier):
    """An RBM whose visible layer is a row beside its class: `p(y | x)` is exact (Larochelle and Bengio 2008).

    It learns to classify and, by `generation_weight`, to generate: 0 makes a classifier, 1 a joint density, a little of
    it one that the density keeps from overfitting. Columns of 0 and 1 are binary, all others real and standardized. A
    value that is not known (NaN) stands at the mean of its column.

    Parameters: `n_components` hidden units, `generation_weight`, `max_iter` (how many updates), `batch_size`,
    `learning_rate` of Adam, `random_state`. Attributes: `classes_`; `machine_`, the trained `harmonium.ClassRBM`.

    >>> import numpy as np
    >>> X = np.array([[0.0], [0.1], [1.0], [1.1]])
    >>> ClassRBMClassifier(4, max_iter=50, random_state=0).fit(X, [0, 0, 1, 1]).predict_proba(X).shape
    (4, 2)
    """

    def __init__(
        self,
        n_components: int = 100,
        *,
        generation_weight: float = 0.01,
        max_iter: int = 1000,
        batch_size: int = 128,
        learning_rate: float = 0.01,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.generation_weight = generation_weight
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state

    def _check(self) -> None:
        self._check_counts(n_components=1, max_iter=1, batch_size=1)
        self._check_positive("learning_rate")

    def _learn_classes(self, rows: Any, codes: np.ndarray) -> None:
        generator = self._generator()
        units, hidden = self.columns_.units(), Bernoulli(int(self.n_components))
        machine = ClassRBM(units, hidden, len(self.classes_), generator=generator)
        n = n_start(rows)
        first = self.columns_.encode(rows[:n], fill=True)
        initialize(machine, {"visible": first, "label": torch.from_numpy(codes[:n])})
        learn(
            machine,
            source(rows, self.columns_, codes, ("visible", "label"), fill=True),
            rows.shape[0],
            n_updates=self.max_iter,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            objective=Hybrid(self.generation_weight),
            weights=None,
            generator=generator,
        )
        self.machine_, self._law, self.n_iter_ = machine, copy.deepcopy(machine).double(), self.max_iter

    def _probabilities(self, rows: Any) -> np.ndarray:
        parts = [
            self._law.predict_proba(self.columns_.encode(rows[block], torch.float64, fill=True))
            for block in in_blocks(rows, rows.shape[1])
        ]
        return as_rows(parts)
