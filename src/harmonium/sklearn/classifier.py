"""What the classifiers share: classes as numbers, rows with classes, predictions from probabilities."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from harmonium.sklearn.base import HarmoniumEstimator
from harmonium.sklearn.columns import Columns
from harmonium.sklearn.rows import canonical_rows


class HarmoniumClassifier(ClassifierMixin, HarmoniumEstimator):
    """A classifier: `fit` numbers the classes and puts the rows in order, `_learn_classes` does the rest."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train a new model on rows and their classes."""
        self._check()
        rows, labels = self._read(X, y, reset=True)
        check_classification_targets(labels)
        weights = self._weights(sample_weight, rows)
        counted = labels if weights is None else labels[weights > 0]
        self.classes_ = np.unique(counted)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of at least 2 classes. Got 1 class: {self.classes_[0]}."
            )
        codes = np.searchsorted(self.classes_, labels).clip(max=len(self.classes_) - 1)
        rows, codes, _ = canonical_rows(rows, codes, weights, repeat=True)
        self.columns_ = Columns(rows)
        self._learn_classes(rows, codes)
        return self

    @abstractmethod
    def _check(self) -> None:
        """Raise unless the parameters make sense."""

    @abstractmethod
    def _learn_classes(self, rows: Any, codes: np.ndarray) -> None:
        """Train a new model."""

    @abstractmethod
    def _probabilities(self, rows: Any) -> np.ndarray:
        """Return `p(y | x)` of rows that were read."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return `p(y | x)` of each class, `(n_samples, n_classes)`, in the order of `classes_`."""
        check_is_fitted(self)
        return self._probabilities(self._read(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        best = self.predict_proba(X).argmax(1)
        return np.asarray(self.classes_[best])
