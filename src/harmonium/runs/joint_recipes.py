"""Good settings for joint energy models, by data."""

from __future__ import annotations

from typing import Any

_ADAM: dict[str, Any] = {"optimizer": "adam", "learning_rate": 1e-3, "schedule": "cosine"}

_DIGITS: dict[str, Any] = {
    "training": {**_ADAM, "n_steps": 20, "n_chains": 2000, "epochs": 150, "batch_size": 128},
    "joint": {"network": "mlp", "step_size": 0.2, "noise": 0.05, "renewal": 0.02, "input_noise": 0.15},
    "run": {"threads": 1},  # small products are faster on one thread
}

_GRAY_28: dict[str, Any] = {
    "data": {"options": {"n_valid": 5000}},
    "training": {
        **_ADAM,
        "learning_rate": 1.5e-3,
        "n_steps": 10,
        "n_chains": 2000,
        "epochs": 5,
        "batch_size": 100,
        "average": 0.99,
    },
    "joint": {
        "network": "small-conv",
        "step_size": 0.2,
        "noise": 0.03,
        "renewal": 0.05,
        "starts": "clouds",
        "clamp": True,
        "input_noise": 0.1,
        "generation_weight": 0.05,
        "energy_penalty": 2e-4,
    },
}

_COLOR_32: dict[str, Any] = {
    "training": {**_ADAM, "n_steps": 5, "n_chains": 5000, "epochs": 10, "batch_size": 100},
    "joint": {"network": "small-residual", "step_size": 0.2, "noise": 0.03, "renewal": 0.05, "input_noise": 0.05},
}

_PLANE: dict[str, Any] = {
    "training": {**_ADAM, "learning_rate": 3e-3, "n_steps": 10, "n_chains": 2000, "epochs": 40, "batch_size": 256},
    "joint": {"network": "mlp", "step_size": 0.02, "noise": 0.2, "renewal": 0.02, "input_noise": 0.0},
    "run": {"threads": 1},
}

_ANY: dict[str, Any] = {
    "training": {**_ADAM, "n_steps": 20, "n_chains": 2000, "epochs": 50, "batch_size": 128},
    "joint": {"network": "mlp"},
}

JOINT_RECIPES: dict[tuple[str, str], dict[str, Any]] = {
    ("digits", "jem"): _DIGITS,
    ("mnist", "jem"): _GRAY_28,
    ("fashion-mnist", "jem"): _GRAY_28,
    ("cifar10", "jem"): _COLOR_32,
    **{(name, "jem"): _PLANE for name in ("moons", "circles", "mixture", "pinwheel")},
    ("*", "jem"): _ANY,
}
"""In the plane the noise is √(2 step_size): chains then follow the law itself, which is what a density needs."""
