"""Restricted Boltzmann machines with Gaussian visible units: gray values and measurements as real numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from harmonium.data import Data
from harmonium.runs.kinds.rbm import PLANES, RBMKind
from harmonium.runs.settings import Config
from harmonium.runs.values import Prepared, real_values


class GaussianRBMKind(RBMKind):
    """An RBM on real values: levels are scaled to [0, 1], and all of them standardized unless told otherwise."""

    name = "gaussian-rbm"
    summary = "RBM on real values; gray levels become real numbers, standardized"
    recipes: ClassVar[Mapping[str, dict[str, Any]]] = {
        **PLANES,
        "mnist": {
            "model": {"n_hidden": 500},
            "training": {
                "n_chains": 100,
                "n_steps": 1,
                "epochs": 30,
                "batch_size": 100,
                "optimizer": "adam",
                "learning_rate": 0.001,
                "schedule": "linear",
                "weight_decay": 1e-4,
                "clip": 1000.0,
                "track_likelihood": False,
            },
        },
        "*": {
            "model": {"n_hidden": 64},
            "training": {
                "n_steps": 5,
                "epochs": 100,
                "optimizer": "adam",
                "learning_rate": 0.002,
                "schedule": "linear",
                "clip": 10.0,
            },
        },
    }

    def values(self, config: Config, data: Data) -> Prepared:
        """Return real values."""
        return real_values(data, config.data.standardize)
