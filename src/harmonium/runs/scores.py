"""The honest score of a model: log-likelihoods with their bounds, beside how the data were made."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from torch import Tensor

from harmonium.data import Data
from harmonium.evaluation.baselines import gaussian_log_density, independent_log_likelihood
from harmonium.evaluation.likelihood import log_likelihood
from harmonium.evaluation.two_sample import energy_distance, permutation_test
from harmonium.models.frozen import frozen
from harmonium.models.network_energy import NetworkEnergy
from harmonium.partition import log_z
from harmonium.runs.trained import Trained
from harmonium.runs.values import SPLITS, complete
from harmonium.runs.words import as_dict
from harmonium.samplers import sample

_FEW_VALUES = 64  # up to here a full covariance is fitted
_PLANE = 3  # up to here samples are compared with the data point by point
_N_POINTS = 500
_FEW_TO_ANNEAL = 100  # up to here annealing can bridge the way from noise to the model


def machine_scores(trained: Trained, *, n_chains: int | None = None, n_betas: int | None = None) -> dict[str, Any]:
    """Return the log-likelihood of each split in nats, with its bounds, log Z, a baseline, and the note on the data.

    log Z is exact where it can be counted, else a sandwich of `n_chains` annealed chains over `n_betas` temperatures,
    as the configuration says unless given, from a reference fitted to the data. Rows with missing values are left out.
    In few dimensions samples are compared with the test data by the energy distance and a permutation test.
    """
    data, model, section = trained.data, trained.model, trained.config.run
    generator = torch.Generator().manual_seed(section.seed + 1)
    scores: dict[str, Any] = {"data": str(data), "note": data.note, "binarize": trained.config.data.binarize}
    if trained.config.data.binarize == "scale":
        return scores | {
            "likelihood": "none: gray values are not values of binary units. Train with --binarize sample."
        }
    rows = {split: x for split in SPLITS if (x := complete(trained.rows(split))) is not None}
    if any(len(x) < len(getattr(data, split)) for split, x in rows.items()):
        scores["note"] += "; rows with missing values left out"
    if data.transform is not None:
        rows["train"] = data.transform(rows["train"], generator=generator)
    z = log_z(
        model,
        n_chains=n_chains or section.ais_chains,
        n_betas=n_betas or section.ais_betas,
        reference=model.layer(model.data_layer).fitted_field(rows["train"][:10_000]),
        generator=generator,
    )
    scores["log_z"] = as_dict(z)
    for split, x in rows.items():
        scores[split] = as_dict(log_likelihood(model, x, log_z=z).mean()) | {"n": len(x)}
    held_out = rows.get("test", rows.get("valid"))
    if held_out is not None:
        scores |= baseline(data, rows["train"], held_out)
        if data.kind == "real" and math.prod(data.shape) <= _PLANE:
            drawn = sample(model, _N_POINTS, generator=generator)
            test = permutation_test(energy_distance, drawn, held_out[:_N_POINTS], generator=generator)
            scores["energy_distance"] = {"value": test.statistic, "p_value": test.p_value, "n": len(drawn)}
    return scores


def baseline(data: Data, train: Tensor, x: Tensor) -> dict[str, Any]:
    """Return the log-likelihood of what needs no hidden units: a single Gaussian, or independent binary units."""
    if data.kind == "binary":
        name, value = "independent units", independent_log_likelihood(x, train)
    elif data.kind == "real" and math.prod(data.shape) <= _FEW_VALUES:
        name, value = "a single Gaussian", gaussian_log_density(x, train, ridge=1e-6)
    else:
        return {}
    return {"baseline": {"name": name, "value": value.mean().item()}}


def energy_likelihood(
    trained: Trained, n_chains: int | None, n_betas: int | None, *, generator: torch.Generator
) -> dict[str, Any]:
    """Return log Z of a network's energy and the log-likelihood of each split, or a line that says why there is none.

    log Z is annealed from noise, which up to 100 values can bridge; beyond, it is only tried when it is asked for.
    """
    model: NetworkEnergy = trained.model
    n_values, section = math.prod(model.shape), trained.config.run
    if n_values > _FEW_TO_ANNEAL and n_chains is None and n_betas is None:
        return {
            "likelihood": (
                f"not trustworthy, so none is given: log Z of a network over {n_values:,} values would have to be "
                "annealed from noise. Try it, with its bounds, by: harmonium evaluate RUN --n-betas 10000"
            )
        }
    n_chains, n_betas = n_chains or section.ais_chains, n_betas or section.ais_betas
    with warnings.catch_warnings(), frozen(model):
        warnings.filterwarnings("ignore", message="log Z is not trustworthy")  # the estimate itself says so
        z = log_z(model, n_chains=n_chains, n_betas=n_betas, generator=generator)
    low, high = model.box
    where = "with its base measure" if model.base_std is not None else f"on the box [{low:g}, {high:g}]"
    found: dict[str, Any] = {"log_z": as_dict(z), "law": f"a density of real values {where}"}
    if model.base_std is None:
        found["baseline"] = {"name": "the uniform density on the box", "value": -n_values * math.log(high - low)}
    for split in SPLITS:
        x = trained.rows(split)
        if x is not None:
            found[split] = as_dict(log_likelihood(model, x, log_z=z).mean()) | {"n": len(x)}
    return found
