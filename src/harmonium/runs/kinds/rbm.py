"""Restricted Boltzmann machines whose visible units follow the data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch

from harmonium.data import Data
from harmonium.learning.starts import initialize
from harmonium.learning.starts.spread_components import spread_components
from harmonium.models import RBM
from harmonium.models.table_units import table_units
from harmonium.runs.choices import HIDDEN
from harmonium.runs.kinds.base import Kind
from harmonium.runs.settings import Config, Section
from harmonium.units import Bernoulli, Gaussian, Poisson, Units

PLANE: dict[str, Any] = {
    "data": {"standardize": False},
    "model": {"n_hidden": 16, "options": {"weight_scale": 0.15}},
    "training": {
        "objective": "pcd",
        "n_chains": 512,
        "n_steps": 5,
        "epochs": 100,
        "batch_size": 256,
        "optimizer": "adam",
        "learning_rate": 0.01,
        "schedule": "linear",
        "track_likelihood": False,
    },
    "run": {"threads": 1},  # small products are faster on one thread
}
PLANES = dict.fromkeys(("moons", "circles", "mixture", "pinwheel", "checkerboard"), PLANE)
"""The densities in the plane, kept in their own coordinates."""

_PIXEL_SIGMA = 0.05  # a pixel that never varies would get σ = 0.001, and x/σ² a million times what others put on h


class RBMKind(Kind[Section]):
    """An RBM with one hidden layer; `model.options.weight_scale` starts a Gaussian one as a mixture."""

    options = ("weight_scale",)
    name = "rbm"
    summary = "restricted Boltzmann machine; its visible units follow the data"
    recipes: ClassVar[Mapping[str, dict[str, Any]]] = {
        **PLANES,
        "digits": {
            "model": {"n_hidden": 128},
            "training": {
                "n_chains": 128,
                "n_steps": 5,
                "epochs": 200,
                "batch_size": 64,
                "learning_rate": 0.05,
                "schedule": "linear",
                "weight_decay": 1e-3,
                "average": 0.99,
            },
            "run": {"threads": 1},
        },
        "bars-and-stripes": {
            "model": {"n_hidden": 16},
            "training": {"epochs": 300, "batch_size": 32, "n_steps": 5, "learning_rate": 0.1, "schedule": "linear"},
            "run": {"threads": 1},
        },
        "ising": {
            "model": {"n_hidden": 32},
            "training": {"epochs": 50, "n_steps": 5, "schedule": "linear"},
            "run": {"threads": 1},
        },
        "binarized-mnist": {
            "model": {"n_hidden": 500},
            "training": {
                "n_chains": 100,
                "n_steps": 1,
                "epochs": 340,
                "batch_size": 100,
                "learning_rate": 0.12,
                "schedule": "linear",
                "weight_decay": 1e-3,
                "centering": True,
                "average": 0.9998,
            },
            "run": {"log_z": "tempering", "ais_chains": 160, "ais_betas": 12_000},
        },
    }

    def build(self, config: Config, data: Data, *, generator: torch.Generator) -> RBM:
        """Return an RBM whose visible units fit the data, its biases fitted to the training split."""
        gray = data.kind == "real" and config.data.binarize == "scale"
        visible = Bernoulli(math.prod(data.shape)) if gray else visible_units(data)
        hidden = HIDDEN[config.model.hidden](config.model.n_hidden, config.model.options)
        rbm = RBM(visible, hidden, generator=generator)
        rows = data.train[:10_000].reshape(-1, *visible.shape)
        initialize(rbm, rows if data.transform is None else data.transform(rows, generator=generator))
        # The recipe spreads the components of a mixture; under unbounded hidden units, far apart, they have no Z.
        if "weight_scale" in config.model.options and hidden.support == "finite":
            spread_components(rbm, float(config.model.options["weight_scale"]), generator=generator)
        return rbm


def visible_units(data: Data) -> Units:
    """Return the visible units that fit the values: 0/1 Bernoulli, real Gaussian, counts Poisson, a table a mixture."""
    n = math.prod(data.shape)
    if data.kind == "table":
        return table_units(data.columns)
    if data.kind == "real":
        return Gaussian(n, floor=_PIXEL_SIGMA) if len(data.shape) > 1 else Gaussian(n)
    return {"binary": Bernoulli, "counts": Poisson}[data.kind](n)
