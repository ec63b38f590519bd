"""From features to a test error: the one protocol for classification."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from harmonium.data.extras import require
from harmonium.evaluation.classify.linear_svm import LinearSVM, fit_linear_svm

Split = tuple[Tensor, Tensor]
"""Features `(n, n_features)` and labels `(n,)`."""

KERNELS = ("linear", "rbf")


@dataclass(frozen=True)
class Classification:
    """A test error with its binomial standard error `√(e(1 - e)/n)`, and what validation chose.

    `wrong` are the numbers of the test samples it errs on, for paired comparisons (`paired_difference`).

    >>> print(Classification(0.0123, 10_000, 60_000, "linear", 0.1, {0.1: 0.013, 1.0: 0.014}))
    1.23 % ± 0.11 % of 10,000 (linear, C = 0.1, 60,000 training samples)
    """

    error: float
    n_test: int
    n_train: int
    kernel: str
    cost: float
    valid_errors: dict[float, float]
    wrong: tuple[int, ...] = ()

    @property
    def standard_error(self) -> float:
        """The spread of the error over test sets of this size."""
        return math.sqrt(self.error * (1 - self.error) / self.n_test)

    def as_record(self) -> dict[str, Any]:
        """Return everything by name, for JSON."""
        return asdict(self) | {
            "standard_error": self.standard_error,
            "valid_errors": {f"{cost:g}": error for cost, error in self.valid_errors.items()},
        }

    def __str__(self) -> str:
        return (
            f"{100 * self.error:.2f} % ± {100 * self.standard_error:.2f} % of {self.n_test:,} "
            f"({self.kernel}, C = {self.cost:g}, {self.n_train:,} training samples)"
        )


def svm_protocol(
    train: Split,
    valid: Split,
    test: Split,
    *,
    kernel: str = "linear",
    costs: Sequence[float] = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3),
    n_components: int = 200,
    width: float = 0.5,
    n_rows: int = 20_000,
) -> Classification:
    """Return the test error of a support vector machine on features, everything chosen without the test set.

    1. Features are standardized by the moments of `train`.
    2. For each cost C a machine is fitted on `train` and scored on `valid`. The lowest error wins, ties to the small C.
    3. With that C the machine is fitted again on `train` and `valid` together, and scored once on `test`.

    `kernel="linear"` is one class against the rest with the squared hinge, the minimum of scikit-learn's `LinearSVC`
    (see `fit_linear_svm`). `kernel="rbf"` is scikit-learn's `SVC` on the first `n_components` principal components of
    the features, which are not standardized then, with `gamma = width / (total variance)`; it chooses C on the first
    `n_rows` rows of `train`, since its time grows with the square of the rows.
    """
    if kernel not in KERNELS:
        raise ValueError(f"`kernel` must be one of {', '.join(KERNELS)}. Got {kernel!r}.")
    if not costs:
        raise ValueError("`costs` must hold at least one cost C to try.")
    labels = torch.cat([train[1], valid[1]])
    n_classes = int(torch.cat([labels, test[1]]).max()) + 1
    fit = _Linear(train, valid, n_classes) if kernel == "linear" else _Rbf(train, valid, n_components, width, n_rows)
    valid_errors = {cost: fit.valid_error(cost) for cost in sorted(costs)}
    cost = min(valid_errors, key=lambda c: (valid_errors[c], c))
    wrong = (fit.test_classes(cost, test) != test[1]).nonzero().flatten().tolist()
    n = len(test[1])
    return Classification(len(wrong) / n, n, len(labels), kernel, cost, valid_errors, tuple(wrong))


class _Linear:
    """Linear machines; each cost starts where the last one ended."""

    def __init__(self, train: Split, valid: Split, n_classes: int) -> None:
        self.mean, self.std = train[0].mean(0), train[0].std(0)
        self.std.clamp_min_(1e-2 * float(self.std.mean()))
        self.n_train, self.n_classes = len(train[0]), n_classes
        # One matrix for both fits: the standardized rows of train, then those of valid.
        self.x = torch.cat([train[0], valid[0]]).sub_(self.mean).div_(self.std)
        self.labels = torch.cat([train[1], valid[1]])
        self.machine: LinearSVM | None = None

    def valid_error(self, cost: float) -> float:
        n = self.n_train
        self.machine = fit_linear_svm(
            self.x[:n], self.labels[:n], cost=cost, n_classes=self.n_classes, start=self.machine
        )
        return _error(self.machine.predict(self.x[n:]), self.labels[n:])

    def test_classes(self, cost: float, test: Split) -> Tensor:
        machine = fit_linear_svm(self.x, self.labels, cost=cost, n_classes=self.n_classes, start=self.machine)
        return machine.predict((test[0] - self.mean) / self.std)


class _Rbf:
    """Machines with a Gaussian kernel on principal components."""

    def __init__(self, train: Split, valid: Split, n_components: int, width: float, n_rows: int) -> None:
        n = min(n_components, *train[0].shape)
        decomposition = require("sklearn.decomposition", "sklearn", "an SVM with a Gaussian kernel")
        # Its time grows with the number of features, that of exact components with the square.
        axes = decomposition.PCA(n, svd_solver="randomized", iterated_power=3, random_state=0)
        self.axes = axes.fit(train[0].numpy())
        self.train, self.valid = (self.project(train[0]), train[1]), (self.project(valid[0]), valid[1])
        self.gamma = width / float(self.train[0].var(axis=0).sum())
        self.n_rows = n_rows

    def project(self, x: Tensor) -> np.ndarray:
        return np.asarray(self.axes.transform(x.numpy()), dtype=np.float64)

    def fitted(self, x: np.ndarray, labels: Tensor, cost: float) -> Any:
        svm = require("sklearn.svm", "sklearn", "an SVM with a Gaussian kernel")
        return svm.SVC(C=cost, gamma=self.gamma, cache_size=2000).fit(x, labels.numpy())

    def valid_error(self, cost: float) -> float:
        machine = self.fitted(self.train[0][: self.n_rows], self.train[1][: self.n_rows], cost)
        return _error(predict_rbf(machine, self.valid[0]), self.valid[1])

    def test_classes(self, cost: float, test: Split) -> Tensor:
        x = np.concatenate([self.train[0], self.valid[0]])
        machine = self.fitted(x, torch.cat([self.train[1], self.valid[1]]), cost)
        return predict_rbf(machine, self.project(test[0]))


def predict_rbf(machine: Any, x: np.ndarray) -> Tensor:
    """Return the classes that scikit-learn's `SVC` with a Gaussian kernel gives to the rows of `x`, by matrix products.

    For each pair of classes `i < j` the sign of `Σ_s α_s exp(-γ‖x - s‖²) + b`, over the support vectors s of both, is a
    vote for i or for j; most votes win, ties to the first. The same as `machine.predict(x)`, in a tenth of its time.
    """
    vectors, weights = torch.from_numpy(machine.support_vectors_), torch.from_numpy(machine.dual_coef_).mT
    ends = np.cumsum([0, *machine.n_support_])
    classes = [slice(start, stop) for start, stop in zip(ends[:-1], ends[1:], strict=True)]
    pairs = list(itertools.combinations(range(len(classes)), 2))
    sign = -1.0 if len(pairs) == 1 else 1.0  # scikit-learn turns a single pair round
    votes = torch.zeros(len(x), len(classes))
    for rows, out in zip(torch.from_numpy(x).split(1000), votes.split(1000), strict=True):
        kernel = torch.cdist(rows, vectors).square_().mul_(-machine.gamma).exp_()
        parts = [kernel[:, one] @ weights[one] for one in classes]
        for (i, j), bias in zip(pairs, machine.intercept_, strict=True):
            first = sign * (parts[i][:, j - 1] + parts[j][:, i] + bias) > 0
            out[:, i] += first
            out[:, j] += ~first
    return torch.from_numpy(machine.classes_)[votes.argmax(1)]


def _error(predicted: Tensor, labels: Tensor) -> float:
    return (predicted != labels).double().mean().item()
