"""Good settings for known pairs of data and model, in one table. Binarization is never among them: it is chosen."""

from __future__ import annotations

from typing import Any

from harmonium.runs.joint_recipes import JOINT_RECIPES

PLANE = ("moons", "circles", "mixture", "pinwheel", "checkerboard")
"""The densities in the plane, kept in their own coordinates."""

_PLANE: dict[str, Any] = {
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

_DIGITS: dict[str, Any] = {
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
}

_GAUSSIAN: dict[str, Any] = {
    "model": {"n_hidden": 64},
    "training": {
        "n_steps": 5,
        "epochs": 100,
        "optimizer": "adam",
        "learning_rate": 0.002,
        "schedule": "linear",
        "clip": 10.0,
    },
}

_DEEP: dict[str, Any] = {
    "training": {
        "n_steps": 5,
        "n_chains": 100,
        "epochs": 10,
        "learning_rate": 0.1,
        "schedule": "linear",
        "centering": True,
        "average": 0.99,
    },
}

_SMALL: dict[str, Any] = {
    "model": {"n_hidden": 16},
    "training": {"epochs": 300, "batch_size": 32, "n_steps": 5, "learning_rate": 0.1, "schedule": "linear"},
    "run": {"threads": 1},
}

RECIPES: dict[tuple[str, str], dict[str, Any]] = {
    **{(name, kind): _PLANE for name in PLANE for kind in ("rbm", "gaussian-rbm")},
    ("digits", "rbm"): _DIGITS,
    ("bars-and-stripes", "rbm"): _SMALL,
    ("ising", "rbm"): {
        "model": {"n_hidden": 32},
        "training": {"epochs": 50, "n_steps": 5, "schedule": "linear"},
        "run": {"threads": 1},
    },
    ("binarized-mnist", "rbm"): {
        "model": {"n_hidden": 500},
        "training": {
            "n_chains": 100,
            "n_steps": 1,
            "epochs": 340,
            "batch_size": 100,
            "learning_rate": 0.06,
            "schedule": "linear",
            "weight_decay": 1e-3,
            "average": 0.9998,
        },
        "run": {"ais_chains": 160, "ais_betas": 30_000},
    },
    ("mnist", "gaussian-rbm"): {
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
    ("*", "gaussian-rbm"): _GAUSSIAN,
    ("digits", "dbn"): {
        "training": {**_DEEP["training"], "epochs": 200},
        "run": {"threads": 1},
    },
    ("*", "dbn"): _DEEP,
    **JOINT_RECIPES,
}
"""Settings by (data, model); `"*"` stands for any data."""


def recipe(data: str, model: str) -> dict[str, Any]:
    """Return the settings for a pair of data and model: its own, else those of the model for any data, else none.

    >>> recipe("moons", "gaussian-rbm")["model"]["n_hidden"]
    16
    >>> recipe("unheard-of", "rbm")
    {}
    """
    return RECIPES.get((data, model)) or RECIPES.get(("*", model)) or {}
