"""Features of a deep belief network."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from harmonium.learning import fit
from harmonium.learning.objectives import CD, SummedLayers
from harmonium.learning.starts import initialize_layers, layer_rates
from harmonium.models import DBN, RBM
from harmonium.sklearn.base import HarmoniumEstimator, StopAt, as_rows, in_blocks, source
from harmonium.sklearn.columns import Columns
from harmonium.sklearn.rows import canonical_rows
from harmonium.units import Bernoulli

_N_START = 512


class DBNTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, HarmoniumEstimator):
    """A deep belief network as features: `transform` returns the means of the top layer, layer by layer upwards.

    All layers learn at once, each by contrastive divergence on the means of the layer below. Columns become units as in
    `RBMTransformer`. A value that is not known (NaN) stands at the mean of its column.

    Parameters: `hidden_layer_sizes`, the binary units of each hidden layer, lowest first; `max_iter`, the number of
    updates; `batch_size`; `learning_rate`, shared out among the layers by their widths; `random_state`. Attributes:
    `machine_`, the trained `harmonium.DBN`; `n_iter_`.

    >>> import numpy as np
    >>> X = np.eye(4)
    >>> DBNTransformer((3, 2), max_iter=5, random_state=0).fit(X).transform(X).shape
    (4, 2)
    """

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (256, 128),
        *,
        max_iter: int = 1000,
        batch_size: int = 128,
        learning_rate: float = 0.1,
        random_state: Any = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state

    _min_rows = 2  # the weights start by the spread of what they see

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train a new network on X; `y` is ignored."""
        self._check_counts(max_iter=1, batch_size=1)
        self._check_positive("learning_rate")
        sizes = tuple(self.hidden_layer_sizes)
        if not sizes or any(int(size) != size or size < 1 for size in sizes):
            raise ValueError(f"`hidden_layer_sizes` must hold whole numbers, at least 1. Got {sizes}.")
        rows = self._read(X, reset=True)
        rows, _, weights = canonical_rows(rows, None, self._weights(sample_weight, rows))
        generator = self._generator()
        self.columns_ = Columns(rows, unit_interval=True)
        layers = [self.columns_.units(), *(Bernoulli(int(size)) for size in sizes)]
        dbn = DBN([RBM(below, above, generator=generator) for below, above in pairwise(layers)])
        initialize_layers(dbn, self.columns_.encode(rows[:_N_START], fill=True))
        n_batches = -(-rows.shape[0] // self.batch_size)
        fit(
            dbn,
            source(rows, self.columns_, fill=True),
            SummedLayers(CD()),
            optimizer=torch.optim.Adam(layer_rates(dbn, self.learning_rate)),
            epochs=-(-self.max_iter // n_batches),
            batch_size=self.batch_size,
            weights=weights,
            callbacks=[StopAt(self.max_iter)],
            monitors=(),
            generator=generator,
        )
        self.machine_, self._law, self.n_iter_ = dbn, copy.deepcopy(dbn).double(), self.max_iter
        self._n_features_out = int(sizes[-1])
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the means of the top layer, `(n_samples, hidden_layer_sizes[-1])`."""
        check_is_fitted(self)
        rows = self._read(X)
        with torch.no_grad():
            parts = [
                self._law.up(self.columns_.encode(rows[block], torch.float64, fill=True))
                for block in in_blocks(rows, rows.shape[1])
            ]
        return as_rows(parts).astype(rows.dtype)
