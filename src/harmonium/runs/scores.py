"""The honest score of a model: log-likelihoods with their bounds, beside how the data were made."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from harmonium.evaluation.annealed_rows import rows_log_likelihood
from harmonium.evaluation.baselines import simple_laws
from harmonium.evaluation.classifier_test import told_apart
from harmonium.evaluation.compare import exactly, paired_difference
from harmonium.evaluation.dbn_bound import check_bounded
from harmonium.evaluation.detectable import partly_gaussian, shifted, smallest_detectable
from harmonium.evaluation.likelihood import log_likelihood
from harmonium.evaluation.two_sample import energy_distance, permutation_test
from harmonium.models import RBM, BoltzmannMachine, ScaleMixture
from harmonium.models.frozen import frozen
from harmonium.models.network_energy import NetworkEnergy
from harmonium.partition import log_z
from harmonium.runs.trained import Trained
from harmonium.runs.values import SPLITS, complete
from harmonium.runs.words import as_dict
from harmonium.samplers import sample
from harmonium.types import Estimate

_PLANE = 3  # up to here samples are compared with the data point by point
_N_POINTS = 500
_N_HOLED = 1000
_FEW_TO_ANNEAL = 100  # up to here annealing can bridge the way from noise to the model


def machine_scores(trained: Trained, *, n_chains: int | None = None, n_betas: int | None = None) -> dict[str, Any]:
    """Return the log-likelihood of each split in nats, with its bounds, log Z, a baseline, and the note on the data.

    log Z is exact where it can be counted, else estimated by `n_chains` chains over `n_betas` temperatures, as the
    configuration says unless given, from a reference fitted to the data. Missing values are summed out by an RBM,
    exactly or by annealing; for other models rows that have some are left out. Beside it stands the best law
    without hidden units on the same samples. In few dimensions samples are compared with the held-out data by tests
    that say what they could have seen.
    """
    data, model, section = trained.data, trained.model, trained.config.run
    generator = torch.Generator().manual_seed(section.seed + 1)
    scores: dict[str, Any] = {"data": str(data), "note": data.note, "binarize": trained.config.data.binarize}
    if trained.config.data.binarize == "scale":
        return scores | {
            "likelihood": "none: gray values are not values of binary units. Train with --binarize sample."
        }
    rows = {split: x for split in SPLITS if (x := complete(trained.rows(split))) is not None}
    if any(len(rows.get(split, ())) < len(x) for split, x in data.splits.items()):
        if isinstance(model, RBM):
            return scores | _with_holes(trained, generator)
        if "train" not in rows:
            return scores | {"likelihood": "none: every row has a missing value, which only an RBM sums out."}
        scores["note"] += "; rows with missing values left out"
    if data.transform is not None:
        rows["train"] = data.transform(rows["train"], generator=generator)
    machine, seen = at_machine(model, rows["train"], generator=generator)
    units = machine.layer(machine.data_layer)
    z = log_z(
        model,
        method=section.log_z,
        n_chains=n_chains or section.ais_chains,
        n_betas=n_betas or section.ais_betas,
        reference=units.fitted_field(seen[:10_000]),
        samples=seen[:64],
        generator=generator,
    )
    scores["log_z"] = as_dict(z)
    found = {split: log_likelihood(model, x, log_z=z) for split, x in rows.items()}
    scores |= {split: as_dict(part.mean()) | {"n": len(rows[split])} for split, part in found.items()}
    split = held_out(rows)
    scores |= against_simple(found[split], simple_laws(rows[split], rows["train"], units=units))
    if split != "train" and data.kind == "real" and math.prod(data.shape) <= _PLANE:
        drawn = sample(model, _N_POINTS, generator=generator)
        scores["samples"] = compare_samples(drawn, rows[split][:_N_POINTS], rows["train"], generator=generator)
    return scores


def at_machine(
    model: BoltzmannMachine | ScaleMixture, x: Tensor, *, generator: torch.Generator | None = None
) -> tuple[BoltzmannMachine, Tensor]:
    """Return the machine whose log Z is that of the model, and data as it sees them: divided by drawn scales, or as is.

    A model without scales draws nothing.
    """
    if isinstance(model, ScaleMixture):
        return model.machine, model.divided(x, generator=generator)
    return model, x


def _with_holes(trained: Trained, generator: torch.Generator) -> dict[str, Any]:
    """Return the log-likelihood of the known values of rows of each split, the rest summed out, exactly or annealed."""
    rows = {split: x[:_N_HOLED] for split in SPLITS if (x := trained.rows(split)) is not None}
    found = {split: rows_log_likelihood(trained.model, x, generator=generator) for split, x in rows.items()}
    note = (
        f"{trained.data.note}; observed values only, the missing ones summed out; up to {_N_HOLED:,} rows of each split"
    )
    return {"note": note} | {split: as_dict(part.mean()) | {"n": len(rows[split])} for split, part in found.items()}


def held_out(splits: Collection[str]) -> str:
    """Return the split that counts, of those there are: the test data, else the validation data."""
    return next(split for split in ("test", "valid", "train") if split in splits)


def against_simple(found: Estimate, laws: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the best of the simple laws on the same samples, and how far the model is above it, in pairs."""
    if not laws:
        return {}
    means = {name: exactly(value).mean() for name, value in laws.items()}
    best = max(means, key=lambda name: means[name].value)
    baselines = {name: {"value": part.value, "spread": part.spread} for name, part in means.items()}
    margin = paired_difference(found, exactly(laws[best]))
    return {
        "baselines": baselines,
        "baseline": {"name": best} | baselines[best],
        "margin": as_dict(margin) | {"n": margin.n_samples},
    }


def compare_samples(
    drawn: Tensor, data: Tensor, pool: Tensor, *, generator: torch.Generator | None = None
) -> dict[str, Any]:
    """Return two tests of samples against held-out data, and what the first could have seen, dealt from `pool`.

    The energy distance with its p-value by permutation; the least shift, and the least share of points from a single
    Gaussian, that it finds with probability 0.8; the share of points that nearest neighbors tell apart.
    """
    n, m = len(drawn), len(data)
    test = permutation_test(energy_distance, drawn, data, generator=generator)
    found: dict[str, Any] = {"energy_distance": test.statistic, "p_value": test.p_value, "n": n, "m": m}
    if n + m <= len(pool):
        for name, plant, largest in (("shift", shifted, 2.0), ("share", partly_gaussian, 1.0)):
            found[name] = smallest_detectable(pool, plant, largest, n=n, m=m, generator=generator)
    return found | {"told_apart": dataclasses.asdict(told_apart(drawn, data, generator=generator))}


def bound_scores(
    trained: Trained, n_chains: int | None, n_betas: int | None, *, generator: torch.Generator
) -> dict[str, Any]:
    """Return a lower bound of the log-likelihood of each split under a deep belief network, or why there is none.

    log Z is that of the top machine; of one with more than 100 units on both sides it is only tried when it is asked
    for. The draws going up differ from sample to sample: the spread over these holds their error, too.
    """
    dbn, section = trained.model, trained.config.run
    try:
        check_bounded(dbn)
    except ValueError:
        return {
            "likelihood": "none: its layers pass on what has no likelihood, pooled or rescaled values or those of "
            "units with levels. Of binary data and dense layers there is a bound"
        }
    top = dbn[-1]
    size = min(math.prod(units.shape) for units in top.units.values())
    if size > _FEW_TO_ANNEAL and n_chains is None and n_betas is None:
        return {
            "likelihood": f"a bound is not tried: log Z of a top machine of {size:,} units takes minutes. Ask for it "
            "with: harmonium evaluate RUN --n-betas 1000"
        }
    rows = {split: x for split in SPLITS if (x := complete(trained.prepared.rows(split, trained.shape))) is not None}
    z = log_z(
        top,
        n_chains=n_chains or section.ais_chains,
        n_betas=n_betas or section.ais_betas,
        generator=generator,
    )
    found = {split: log_likelihood(dbn, x, log_z=z, generator=generator) for split, x in rows.items()}
    scores: dict[str, Any] = {"log_z": as_dict(z)}
    for split, bound in found.items():
        low, high = bound.value + z.value - z.upper, bound.value + z.value - z.lower
        found[split] = dataclasses.replace(bound, error=z.error, lower=low, upper=high)
        scores[split] = as_dict(found[split].mean()) | {"n": len(rows[split])}
    split = held_out(rows)
    return scores | against_simple(found[split], simple_laws(rows[split], rows["train"], units=dbn.visible))


def energy_likelihood(
    trained: Trained, n_chains: int | None, n_betas: int | None, *, noise: float = 0.0, generator: torch.Generator
) -> dict[str, Any]:
    """Return log Z of a network's energy and the log-likelihood of each split, or a line that says why there is none.

    log Z is annealed from noise, which up to 100 values can bridge; beyond, it is only tried when it is asked for. A
    Gaussian for comparison is blurred by the `noise` that was added to the data while the network learned.
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
    scores: dict[str, Any] = {"log_z": as_dict(z), "law": f"a density of real values {where}"}
    rows = {split: x for split in SPLITS if (x := trained.rows(split)) is not None}
    found = {split: log_likelihood(model, x, log_z=z) for split, x in rows.items()}
    scores |= {split: as_dict(part.mean()) | {"n": len(rows[split])} for split, part in found.items()}
    split, box = held_out(rows), model.box if model.base_std is None else None
    laws = simple_laws(rows[split], rows["train"], box=box, ridge=max(noise, 1e-3) ** 2)
    return scores | against_simple(found[split], laws)
