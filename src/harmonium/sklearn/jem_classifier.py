"""A network that classifies and is a density."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from harmonium.learning.monitors import Guard
from harmonium.learning.objectives import JointLikelihood, ReplayBuffer
from harmonium.models import JEM
from harmonium.networks import MLP
from harmonium.samplers import Langevin
from harmonium.sklearn.base import as_rows, in_blocks, learn, source
from harmonium.sklearn.classifier import HarmoniumClassifier

_WIDE = 3.0  # the standard deviation of the base measure, and half the box that chains start in


class JEMClassifier(HarmoniumClassifier):
    """A joint energy model: one network is a classifier, `p(y | x) = softmax f(x)`, and a density of x.

    The network is a multilayer perceptron on standardized columns under a Gaussian base measure. It learns to classify
    and to generate at once: Langevin chains in a replay buffer make its negatives, and a guard brings it back should it
    diverge. A value that is not known (NaN) stands at the mean of its column.

    Parameters: `hidden_layer_sizes`, the widths of the network; `generation_weight`, how much the density counts beside
    the classes, 0 makes an ordinary classifier; `n_steps` of the chains in an update; `max_iter`, how many updates;
    `batch_size`; `learning_rate` of Adam; `random_state`. Attributes: `classes_`; `machine_`, the trained
    `harmonium.JEM` on standardized columns, whose `free_energy` tells outliers from data; `n_iter_`.

    >>> import numpy as np
    >>> X = np.array([[0.0], [0.1], [1.0], [1.1]])
    >>> JEMClassifier(max_iter=50, random_state=0).fit(X, [0, 0, 1, 1]).predict_proba(X).shape
    (4, 2)
    """

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (128, 128),
        *,
        generation_weight: float = 1.0,
        n_steps: int = 10,
        max_iter: int = 500,
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        random_state: Any = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.generation_weight = generation_weight
        self.n_steps = n_steps
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state

    def _check(self) -> None:
        self._check_counts(n_steps=1, max_iter=1, batch_size=1)
        self._check_positive("learning_rate")

    def _learn_classes(self, rows: Any, codes: np.ndarray) -> None:
        generator = self._generator()
        net = MLP(rows.shape[1], len(self.classes_), hidden=tuple(self.hidden_layer_sizes), generator=generator)
        jem = JEM(net, box=(-_WIDE, _WIDE), base_std=_WIDE)
        objective = JointLikelihood(
            n_steps=self.n_steps,
            sampler=Langevin(step_size=0.2, noise=0.1),
            buffer=ReplayBuffer(n_chains=10 * self.batch_size, renewal=0.02),
            generation_weight=self.generation_weight,
            input_noise=0.1,
        )
        learn(
            jem,
            source(rows, self.columns_, codes, ("x", "y"), fill=True),
            rows.shape[0],
            n_updates=self.max_iter,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            objective=objective,
            weights=None,
            generator=generator,
            monitors=(Guard(),) if self.generation_weight else (),
        )
        self.machine_, self._law, self.n_iter_ = jem, copy.deepcopy(jem).double(), self.max_iter

    def _probabilities(self, rows: Any) -> np.ndarray:
        parts = [
            self._law.predict_proba(self.columns_.encode(rows[block], torch.float64, fill=True))
            for block in in_blocks(rows, rows.shape[1])
        ]
        return as_rows(parts)
