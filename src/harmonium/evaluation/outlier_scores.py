"""Scores by which a model tells data from what is not."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.models import JEM
from harmonium.models.frozen import frozen
from harmonium.samplers.gradient import energy_and_slope
from harmonium.types import EnergyModel


def outlier_scores(model: EnergyModel, x: Tensor, *, n_rows: int = 1024) -> dict[str, Tensor]:
    """Return scores that are larger for samples that are more like the data, `(n,)` each, for `auroc` and `fpr95`.

    `free_energy` is `-F(x)`, `slope` is `-‖∂F/∂x‖` (Grathwohl et al. 2020, section 5.3), and for a joint model
    `confidence` is `max_y p(y|x)` (Hendrycks and Gimpel 2017). Computed `n_rows` samples at a time, in evaluation mode.

    >>> from harmonium.evaluation.outlier_scores import outlier_scores
    >>> sorted(outlier_scores(JEM(MLP(4, 3)), torch.zeros(5, 4)))
    ['confidence', 'free_energy', 'slope']
    """
    parts: dict[str, list[Tensor]] = {}
    with frozen(model):
        for rows in x.split(n_rows):
            energy, slope = energy_and_slope(model, rows)
            found = {"free_energy": -energy, "slope": -slope.flatten(1).norm(dim=1)}
            if isinstance(model, JEM):
                found["confidence"] = model.predict_proba(rows).amax(-1)
            for name, values in found.items():
                parts.setdefault(name, []).append(values)
    return {name: torch.cat(values) for name, values in parts.items()}
