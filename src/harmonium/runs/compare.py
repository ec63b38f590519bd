"""Runs side by side: the settings in which they differ, and how much more probable one finds the test data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from harmonium.evaluation.compare import paired_difference
from harmonium.evaluation.likelihood import log_likelihood
from harmonium.models.frozen import frozen
from harmonium.runs.config import flattened
from harmonium.runs.likelihood_words import errors
from harmonium.runs.run import Run
from harmonium.runs.use import evaluate
from harmonium.runs.values import complete
from harmonium.types import EnergyModel, Estimate

IGNORED = frozenset({"run.threads", "run.report", "run.evaluate", "run.checkpoint_seconds", "run.checkpoint_updates"})
"""Settings that decide nothing of what is learned."""

_COLUMNS = ("data.name", "data.data_dir", "model.kind", "model.n_hidden", "training.epochs")


@dataclass(frozen=True)
class Difference:
    """`log p(x)` of one run less that of another, the mean over the same test samples.

    `error` is that of the two log Z, which all samples share; `spread` the standard error over the samples, of their
    differences: paired, so that what is hard for both runs cancels.
    """

    value: float
    error: float
    spread: float
    n_samples: int

    @property
    def clear(self) -> bool:
        """Whether it lies outside three standard errors of both kinds."""
        return abs(self.value) > 3 * math.hypot(self.error, self.spread)

    def __str__(self) -> str:
        return f"{self.value:+.2f}{errors({'error': self.error, 'spread': self.spread})}"


@dataclass(frozen=True)
class Compared:
    """One run of a comparison: its name, its scores, its headline, and its difference to the first, or why not."""

    name: str
    run: Run
    scores: Mapping[str, Any]
    headline: str
    difference: Difference | None
    why_not: str = ""


def compare(runs: Sequence[Run]) -> list[Compared]:
    """Return the runs with their scores, those not evaluated yet scored now, each compared with the first."""
    if len(runs) < 2:
        raise ValueError("Two or more runs can be compared. Give their folders.")
    names = short_names(runs)
    scores = [run.evaluation() or _scored(run) for run in runs]
    nats = [sample_nats(run, found) for run, found in zip(runs, scores, strict=True)]
    result = []
    for name, run, found, own in zip(names, runs, scores, nats, strict=True):
        difference, why_not = None, ""
        if run is not runs[0]:
            difference, why_not = _difference(nats[0], own)
        result.append(Compared(name, run, found, run.kind.headline(found), difference, why_not))
    return result


def differing_settings(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Return the settings that are not the same in all runs, by their dotted names: one value a run, None without."""
    flat = [flattened(run.config.model_dump()) for run in runs]
    names = sorted({name for settings in flat for name in settings} - IGNORED)
    values = {name: [settings.get(name) for settings in flat] for name in names}
    return {name: found for name, found in values.items() if any(value != found[0] for value in found)}


def varying_settings(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the settings of each run that are not the same in all runs of its kind on its data.

    They have the last part of their names; those that a list of runs has columns for are left out.
    """
    alike: dict[tuple[str, str], list[int]] = {}
    for i, run in enumerate(runs):
        alike.setdefault((run.config.data.name, run.config.model.kind), []).append(i)
    found: list[dict[str, Any]] = [{} for _ in runs]
    for group in alike.values():
        for name, values in differing_settings([runs[i] for i in group]).items():
            if name not in _COLUMNS:
                for i, value in zip(group, values, strict=True):
                    if value not in (None, [], {}):
                        found[i][name.rpartition(".")[2]] = value
    return found


def short_names(runs: Sequence[Run]) -> list[str]:
    """Return the names of the folders, with those above them where two are the same."""
    names = [run.folder.resolve().name for run in runs]
    if len(set(names)) < len(names):
        return [str(run.folder) for run in runs]
    return names


def sample_nats(run: Run, scores: Mapping[str, Any]) -> tuple[Tensor, Estimate] | None:
    """Return the test samples of a run and `log p` of each, None where its kind has no likelihood."""
    log_z = scores.get("log_z")
    trained = run.trained()
    rows = complete(trained.rows("test" if trained.data.test is not None else "train"))
    if log_z is None or rows is None or not isinstance(trained.model, EnergyModel):
        return None
    error = math.inf if log_z["error"] is None else log_z["error"]
    z = Estimate(log_z["value"], error, log_z["lower"], log_z["upper"], log_z["kind"])
    with torch.no_grad(), frozen(trained.model):
        return rows, log_likelihood(trained.model, rows, log_z=z)


def _scored(run: Run) -> dict[str, Any]:
    scores = evaluate(run)
    run.write_evaluation(scores)
    return scores


def _difference(
    first: tuple[Tensor, Estimate] | None, other: tuple[Tensor, Estimate] | None
) -> tuple[Difference | None, str]:
    if first is None or other is None:
        return None, "one of them has no likelihood"
    (x, a), (y, b) = first, other
    if x.shape != y.shape or not torch.equal(x.double(), y.double()):
        return None, "their test samples are not the same: nats of differently prepared data cannot be compared"
    found = paired_difference(b, a)
    return Difference(found.value, found.error, found.spread, found.n_samples), ""
