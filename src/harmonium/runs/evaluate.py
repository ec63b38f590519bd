"""The honest score of a run: log-likelihoods with their bounds, beside how the data were made."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from harmonium.data import Data
from harmonium.evaluation.likelihood import log_likelihood
from harmonium.evaluation.two_sample import energy_distance, permutation_test
from harmonium.models import BoltzmannMachine
from harmonium.partition import log_z
from harmonium.runs.build import MODELS
from harmonium.runs.estimate import as_dict
from harmonium.runs.prepare import SPLITS, complete
from harmonium.runs.run import Run
from harmonium.samplers import sample

_FEW_VALUES = 64  # up to here a full covariance is fitted
_PLANE = 3  # up to here samples are compared with the data point by point
_N_POINTS = 500


def evaluate(run: Run, *, n_chains: int | None = None, n_betas: int | None = None) -> dict[str, Any]:
    """Return the log-likelihood of each split in nats, with its bounds, log Z, a baseline, and the note on the data.

    log Z is exact where it can be counted, else a sandwich of `n_chains` annealed chains over `n_betas` temperatures,
    as the configuration says unless given, from a reference fitted to the data. Rows with missing values are left out.
    In few dimensions samples are compared with the test data by the energy distance and a permutation test.
    """
    if run.config.run.threads is not None:
        torch.set_num_threads(run.config.run.threads)
    own = MODELS[run.config.model.kind].evaluate
    if own is not None:
        return own(run, n_chains=n_chains, n_betas=n_betas)
    data, model = run.data(), run.model()
    generator = torch.Generator().manual_seed(run.config.run.seed + 1)
    scores: dict[str, Any] = {"data": str(data), "note": data.note, "binarize": run.config.data.binarize}
    if not isinstance(model, BoltzmannMachine):
        return scores | {"likelihood": f"a {run.config.model.kind} has no likelihood that can be trusted"}
    if run.config.data.binarize == "scale":
        return scores | {
            "likelihood": "none: gray values are not values of binary units. Train with --binarize sample."
        }
    rows = {split: x for split in SPLITS if (x := complete(run.rows(split))) is not None}
    if any(len(x) < len(getattr(data, split)) for split, x in rows.items()):
        scores["note"] += "; rows with missing values left out"
    if data.transform is not None:
        rows["train"] = data.transform(rows["train"], generator=generator)
    reference = model.layer(model.data_layer).fitted_field(rows["train"][:10_000])
    z = log_z(
        model,
        n_chains=n_chains or run.config.run.ais_chains,
        n_betas=n_betas or run.config.run.ais_betas,
        reference=reference,
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
        p = (train.double().sum(0) + 0.5) / (len(train) + 1)
        value = torch.where(x > 0.5, p, 1 - p).log().flatten(1).sum(1)
        name = "independent units"
    elif data.kind == "real" and math.prod(data.shape) <= _FEW_VALUES:
        flat = train.double().flatten(1)
        spread = torch.cov(flat.T).reshape(flat.shape[1], -1) + 1e-6 * torch.eye(flat.shape[1], dtype=torch.float64)
        centered = x.double().flatten(1) - flat.mean(0)
        distance = (centered * torch.linalg.solve(spread, centered.T).T).sum(1)
        value = -0.5 * (distance + torch.logdet(2 * math.pi * spread))
        name = "a single Gaussian"
    else:
        return {}
    return {"baseline": {"name": name, "value": value.mean().item()}}
