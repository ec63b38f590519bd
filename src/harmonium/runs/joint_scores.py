"""The honest scores of a joint model: accuracy, calibration, outliers, and a likelihood where there is one."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from harmonium.evaluation.classify.calibration import expected_calibration_error
from harmonium.evaluation.likelihood import log_likelihood
from harmonium.evaluation.ood import auroc, fpr95
from harmonium.evaluation.outlier_scores import outlier_scores
from harmonium.models import JEM
from harmonium.models.frozen import frozen
from harmonium.partition import log_z
from harmonium.runs.estimate import as_dict
from harmonium.runs.outliers import outliers

if TYPE_CHECKING:
    from harmonium.runs.run import Run

SPLITS = ("train", "valid", "test")

_FEW_VALUES = 100  # up to here annealing can bridge the way from noise to the model
_ROWS = 1000


def joint_scores(run: Run, *, n_chains: int | None = None, n_betas: int | None = None) -> dict[str, Any]:
    """Return the accuracy on each split, the calibration error, how outliers are told apart, and log-likelihoods.

    The last three are of the test data (validation data where there are none). AUROC and FPR at 95 % recall are by free
    energy, by the length of its slope, and by the largest class probability. log p(x) is that of the law on the box, or
    with the base measure, whose log Z is estimated by annealing; with more than 100 values a sample that cannot be
    trusted and is only tried when `n_chains` or `n_betas` is given.
    """
    model, data = run.model(), run.data()
    if not isinstance(model, JEM):
        raise TypeError(f"Only a joint model has these scores. Got {type(model).__name__}.")
    generator = torch.Generator().manual_seed(run.config.run.seed + 1)
    scores: dict[str, Any] = {"data": str(data), "note": data.note, "accuracy": {}}
    held_out, probabilities = "train", torch.empty(0)
    for split in SPLITS:
        x, y = run.rows(split), getattr(data, f"{split}_labels")
        if x is None or y is None:
            continue
        held_out, probabilities = split, class_probabilities(model, x)
        right = (probabilities.argmax(-1).cpu() == y).double()
        error = math.sqrt(right.mean().item() * (1 - right.mean().item()) / len(y))
        scores["accuracy"][split] = {"value": right.mean().item(), "error": error, "n": len(y)}
    labels = getattr(data, f"{held_out}_labels").to(probabilities.device)
    scores["calibration_error"] = {
        "value": expected_calibration_error(probabilities, labels),
        "split": held_out,
        "n": len(labels),
    }
    rows = run.rows(held_out)
    if rows is not None:
        scores["outliers"] = outlier_table(run, model, rows, generator=generator)
    scores["rollbacks"] = int(next((r["rollbacks"] for r in reversed(run.metrics()) if "rollbacks" in r), 0))
    if run.config.joint.baseline:
        return scores | {"likelihood": "none: a plain classifier was trained, L_gen was left out"}
    return scores | likelihood(run, model, n_chains, n_betas, generator=generator)


@torch.no_grad()
def class_probabilities(model: JEM, x: Tensor) -> Tensor:
    """Return `p(y|x)` of each sample, some rows at a time."""
    return torch.cat([model.predict_proba(rows) for rows in x.split(_ROWS)])


def outlier_table(run: Run, model: JEM, x: Tensor, *, generator: torch.Generator) -> dict[str, Any]:
    """Return AUROC and FPR at 95 % recall for each set of outliers and each score."""
    inside = outlier_scores(model, x)
    table: dict[str, Any] = {}
    for name, other in outliers(run, x, generator=generator).items():
        outside = outlier_scores(model, other)
        table[name] = {"n": len(other)} | {
            score: {"auroc": auroc(inside[score], outside[score]), "fpr95": fpr95(inside[score], outside[score])}
            for score in inside
        }
    return table


def likelihood(
    run: Run, model: JEM, n_chains: int | None, n_betas: int | None, *, generator: torch.Generator
) -> dict[str, Any]:
    """Return log Z and the log-likelihood of each split with their bounds, or a line that says why there is none."""
    n_values = math.prod(model.shape)
    if n_values > _FEW_VALUES and n_chains is None and n_betas is None:
        return {
            "likelihood": (
                f"not trustworthy, so none is given: log Z of a network over {n_values:,} values would have to be "
                "annealed from noise. Try it, with its bounds, by: harmonium evaluate RUN --n-betas 10000"
            )
        }
    section = run.config.run
    with warnings.catch_warnings(), frozen(model):
        warnings.filterwarnings("ignore", message="log Z is not trustworthy")  # the estimate itself says so
        z = log_z(
            model, n_chains=n_chains or section.ais_chains, n_betas=n_betas or section.ais_betas, generator=generator
        )
    where = (
        "with its base measure" if model.base_std is not None else f"on the box [{model.box[0]:g}, {model.box[1]:g}]"
    )
    found: dict[str, Any] = {"log_z": as_dict(z), "law": f"a density of real values {where}"}
    if model.base_std is None:
        uniform = -n_values * math.log(model.box[1] - model.box[0])
        found["baseline"] = {"name": "the uniform density on the box", "value": uniform}
    for split in SPLITS:
        x = run.rows(split)
        if x is not None:
            found[split] = as_dict(log_likelihood(model, x, log_z=z).mean()) | {"n": len(x)}
    return found
