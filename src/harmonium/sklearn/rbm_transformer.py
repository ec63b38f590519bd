"""Features of a restricted Boltzmann machine."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import expit
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from harmonium.learning import Callback, Training
from harmonium.learning.history import Record
from harmonium.learning.monitors import default_monitors
from harmonium.learning.objectives import PCD
from harmonium.learning.small_updates import SmallUpdates
from harmonium.learning.starts import initialize
from harmonium.learning.transforms import ParameterAverage
from harmonium.models import RBM
from harmonium.partition import log_z
from harmonium.sklearn.base import HarmoniumEstimator, as_rows, first_rows, in_blocks, source
from harmonium.sklearn.columns import Columns
from harmonium.sklearn.rows import canonical_rows
from harmonium.types import Estimate
from harmonium.units import Bernoulli

_N_FILLS = 50  # rounds of mean field that fill in unknown values
_MEMORY = 0.99  # of the average of the parameters


class RBMTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, HarmoniumEstimator):
    """An RBM as features: `transform` returns `P(h_j = 1 | x)`. A drop-in for `sklearn.neural_network.BernoulliRBM`.

    It learns by the same rule with the same parameters, persistent contrastive divergence with as many chains as rows
    in a batch, shuffles the rows, and returns the average of the parameters over about the last hundred updates, since
    the rate never falls. Values in [0, 1] are read as probabilities of binary units. If some lie outside,
    columns of 0 and 1 are binary and the others real: Gaussian units on standardized values, for which the rate is that
    of Adam, a tenth of `learning_rate`. NaN is a value that is not known: drawn from the model while it learns, filled
    in by mean field when it transforms. `score_samples` are true nats.

    Parameters are those of BernoulliRBM: `n_components` hidden units, `learning_rate`, `batch_size`, `n_iter` (passes
    over the data), `verbose`, `random_state`.

    Attributes: `components_` `(n_components, n_features)`, `intercept_hidden_`, `intercept_visible_`, such that the
    features are `expit(X @ components_.T + intercept_hidden_)` in the units of X; `machine_`, the trained
    `harmonium.RBM`; `log_z()` its log Z, with the error.

    >>> import numpy as np
    >>> X = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]])
    >>> RBMTransformer(n_components=2, random_state=0).fit(X).transform(X).shape
    (4, 2)
    """

    def __init__(
        self,
        n_components: int = 256,
        *,
        learning_rate: float = 0.1,
        batch_size: int = 10,
        n_iter: int = 10,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.verbose = verbose
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train a new machine on X; `y` is ignored."""
        rows = self._read(X, reset=True)
        rows, _, weights = canonical_rows(rows, None, self._weights(sample_weight, rows))
        self._begin(rows)
        self._learn(rows, weights, n_epochs=self.n_iter, batch_size=self.batch_size)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Make one update with X as the batch; the first call decides the kinds of the columns. `y` is ignored."""
        is_new = not hasattr(self, "_learner")
        rows = self._read(X, reset=is_new)
        rows, _, weights = canonical_rows(rows, None, self._weights(sample_weight, rows))
        if is_new:
            self._begin(rows)
        self._learn(rows, weights, n_epochs=1, batch_size=rows.shape[0])
        return self

    def _begin(self, rows: Any) -> None:
        self._check_counts(n_components=1, batch_size=1, n_iter=0)
        self._check_positive("learning_rate")
        self.random_state_ = check_random_state(self.random_state)
        self.columns_ = Columns(rows, unit_interval=True)
        generator = self._generator(self.random_state_)
        self._learner = RBM(self.columns_.units(), Bernoulli(self.n_components), generator=generator)
        self._objective, self._average = PCD(n_chains=self.batch_size), ParameterAverage(_MEMORY)
        if self.columns_.all_binary:
            self._optimizer: torch.optim.Optimizer = torch.optim.SGD(
                self._learner.parameters(), self.learning_rate, foreach=False
            )
        else:
            self._optimizer = torch.optim.Adam(self._learner.parameters(), self.learning_rate / 10)
        initialize(self._learner, first_rows(rows, self.columns_))
        self._n_features_out = self.n_components

    def _learn(self, rows: Any, weights: np.ndarray | None, *, n_epochs: int, batch_size: int) -> None:
        training = Training(
            self._learner,
            source(rows, self.columns_),
            self._objective,
            optimizer=self._optimizer,
            epochs=n_epochs,
            batch_size=batch_size,
            weights=weights,
            transforms=[self._average],
            monitors=default_monitors() if self.verbose else (),
            callbacks=[_Talk(type(self).__name__)] if self.verbose else (),
            generator=self._generator(self.random_state_),
        )
        training.small = SmallUpdates.of(training)
        training.run()
        self._publish()

    def _publish(self) -> None:
        """Set the attributes that people read, in the units and the order of the columns of X."""
        columns = self.columns_
        self.machine_ = copy.deepcopy(self._learner)
        copy.deepcopy(self._average).swap(self.machine_)
        with torch.no_grad():
            rbm = copy.deepcopy(self.machine_).double()
            zero = torch.zeros(1, len(columns.order), dtype=torch.float64)
            c = rbm.field("hidden", {"visible": zero})[0].numpy()
            # What a unit of x adds to the field: s is linear, so W s(e_i) row by row.
            slopes = (rbm.weight * rbm.visible.statistic(torch.ones_like(zero))[0].unsqueeze(1)).numpy()
            at_rest = rbm.field("visible", {"hidden": torch.zeros(1, self.n_components, dtype=torch.float64)})
        weight = np.empty((self.n_components, len(columns.order)))
        weight[:, columns.order] = slopes.T / columns.scale[columns.order]
        self.components_ = weight
        self.intercept_hidden_ = c - weight @ columns.mean
        self.intercept_visible_ = columns.decode(at_rest)[0]
        self._law = _Law(rbm, int(self.random_state_.randint(2**31 - 1)))

    def transform(self, X: Any) -> np.ndarray:
        """Return `P(h_j = 1 | x)`, `(n_samples, n_components)`; unknown values are filled in by mean field first."""
        check_is_fitted(self)
        rows = self._read(X)
        if not sp.issparse(rows) and np.isnan(rows).any():
            rows = self._filled(rows)
        h = expit(safe_sparse_dot(rows, self.components_.T, dense_output=True) + self.intercept_hidden_)
        return np.asarray(h, dtype=rows.dtype)

    def _filled(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows with unknown values at `E[v | h]`, `h = E[h | v]`, in turn from the means of the columns."""
        v = self.columns_.encode(rows, torch.float64)
        unknown, rbm = v.isnan(), self._law.rbm
        start = rbm.visible.mean(rbm.bias_field("visible"))
        v = torch.where(unknown, start, v)
        with torch.no_grad():
            for _ in range(_N_FILLS):
                h = rbm.mean("hidden", {"visible": v})
                v = torch.where(unknown, rbm.mean("visible", {"hidden": h}), v)
        return self.columns_.decode(v).astype(rows.dtype)

    def score_samples(self, X: Any) -> np.ndarray:
        """Return `log p(x) = -F(x) - log Z` of each row in nats; log Z is estimated once, when it is first needed.

        Real columns have a density in the units of X. Of values between 0 and 1 in binary columns it is at most the
        average over the 0/1 rows that they are the probabilities of, since -F is convex.
        """
        check_is_fitted(self)
        rows = self._read(X)
        if not sp.issparse(rows) and np.isnan(rows).any():
            raise ValueError(
                "score_samples of an RBMTransformer needs all values; X holds NaN. BoltzmannDensity sums them out."
            )
        with torch.no_grad():
            parts = [
                -self._law.rbm.energy({"visible": self.columns_.encode(rows[block], torch.float64)})
                for block in in_blocks(rows, rows.shape[1])
            ]
        return as_rows(parts) - self._law.log_z.value - self.columns_.log_scale()

    def log_z(self) -> Estimate:
        """Return log Z of the trained machine: exact where it can be counted, else with its error and bounds."""
        check_is_fitted(self)
        return self._law.log_z

    def gibbs(self, v: Any) -> np.ndarray:
        """Return the rows after one step of Gibbs sampling: h given v, then v given h."""
        check_is_fitted(self)
        rows = self._read(v)
        generator, state = self._generator(self.random_state_), {"visible": self.columns_.encode(rows, torch.float64)}
        rbm = self._law.rbm
        h: Tensor = rbm.sample("hidden", state, generator=generator)
        return self.columns_.decode(rbm.sample("visible", {"hidden": h}, generator=generator))


@dataclass(frozen=True, eq=False)
class _Law:
    """A trained machine in double precision, and its log Z when somebody asks for it."""

    rbm: RBM
    seed: int

    @cached_property
    def log_z(self) -> Estimate:
        return log_z(self.rbm, generator=torch.Generator().manual_seed(self.seed))


class _Talk(Callback):
    """Prints a line after each pass over the data."""

    def __init__(self, name: str) -> None:
        self.name, self.began = name, time.perf_counter()

    def on_epoch(self, training: Training, record: Record) -> None:
        """Print how it goes."""
        now = time.perf_counter()
        told = {"pseudo-likelihood": "pseudo_likelihood", "reconstruction": "reconstruction"}
        numbers = [f"{words} = {record[name]:.4g}" for words, name in told.items() if name in record]
        print(", ".join([f"[{self.name}] Iteration {record['epoch']}", *numbers, f"time = {now - self.began:.2f}s"]))
        self.began = now
