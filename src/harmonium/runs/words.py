"""Numbers and scores in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from harmonium.types import Estimate

SPLITS = {"test": "test", "valid": "validation", "train": "training"}
"""The splits in words, the one that counts first."""

OUTLIER_SCORES = {
    "free_energy": ("free energy", "−F(x), the log density up to a constant"),
    "slope": ("gradient norm", "−‖∂F/∂x‖, minus the length of the gradient"),
    "confidence": ("max softmax", "max p(y|x), the largest class probability"),
}
"""The scores that tell outliers from data, in two words and in a line."""


def as_dict(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as plain values, with the line that prints it."""
    names = ("value", "error", "spread", "lower", "upper", "at_least", "at_most", "kind", "ess", "trusted", "note")
    return {name: getattr(estimate, name) for name in names} | {"text": str(estimate)}


def number(value: Any, digits: int = 2) -> str:
    """Return a number with a true minus sign and thousands apart; a dash for what is no finite number.

    >>> number(-1234.567), number(float("nan"))
    ('−1,234.57', '–')
    """
    if not isinstance(value, int | float) or not math.isfinite(value):
        return "–"
    return f"{value:,.{digits}f}".replace("-", "−")


def is_score(value: Any) -> bool:
    """Say whether a value is a score: plain values with a finite `value` among them."""
    return isinstance(value, Mapping) and isinstance(value.get("value"), int | float) and math.isfinite(value["value"])


def in_short(score: Mapping[str, Any]) -> str:
    """Return an estimate in a few words: its value, the errors it has, and whether not to rely on it.

    The first error is that of log Z, the second that over the samples.

    >>> in_short({"value": -85.31, "error": 0.04, "spread": 0.21, "trusted": False})
    '-85.31 ± 0.04 ± 0.21 (do not rely on it)'
    """
    error = "".join(f" ± {score[name]:.2g}" for name in ("error", "spread") if score.get(name))
    return f"{score['value']:.2f}{error}" + (" (do not rely on it)" if score.get("trusted") is False else "")


def likelihood_lines(scores: Mapping[str, Any]) -> list[str]:
    """Return the log-likelihoods with their bounds, what they compare with, and how the data were made, line by line.

    >>> likelihood_lines({"likelihood": "none", "note": "drawn"})
    ['log-likelihood: none', '      data: drawn']
    """
    lines = [f"log-likelihood: {scores['likelihood']}"] if "likelihood" in scores else []
    for split in reversed(SPLITS):
        if split in scores:
            lines.append(f"{split:>5} log-likelihood in nats  {scores[split]['text']}")
    if "baseline" in scores:
        lines.append(f"      for comparison, {scores['baseline']['name']}: {scores['baseline']['value']:.4g} nats")
    if "energy_distance" in scores:
        distance = scores["energy_distance"]
        lines.append(
            f"      samples against data: energy distance {distance['value']:.2g}, p = {distance['p_value']:.3g}"
        )
    if "law" in scores:
        lines.append(f"      of {scores['law']}: not the probability of gray levels")
    return lines + ([f"      data: {scores['note']}"] if "note" in scores else [])


def class_lines(scores: Mapping[str, Any]) -> list[str]:
    """Return accuracies, the calibration error, how outliers are told apart, and the returns of the guard."""
    lines = [
        f"{split:>5} accuracy  {score['value']:.2%} ± {score['error']:.2%} of {score['n']:,}"
        for split, score in scores["accuracy"].items()
    ]
    error = scores["calibration_error"]
    lines.append(f"      expected calibration error  {error['value']:.2%} on {error['n']:,} {error['split']} samples")
    for name, table in scores["outliers"].items():
        told = ", ".join(
            f"{said} {table[score]['auroc']:.4f} ({table[score]['fpr95']:.1%})"
            for score, (said, _) in OUTLIER_SCORES.items()
        )
        lines.append(f"      AUROC (FPR at 95 % recall) against {name}: {told}")
    return [*lines, f"      returns of the guard to a good state: {scores['rollbacks']}"]


def class_sentences(scores: Mapping[str, Any]) -> list[str]:
    """Return what a classifier does in sentences: accuracy, calibration, outliers, and how often its guard stepped in.

    >>> class_sentences({"rollbacks": 0})
    ['No divergence.']
    """
    lines = []
    accuracy, error = scores.get("accuracy") or {}, scores.get("calibration_error") or {}
    for split in [split for split in SPLITS if is_score(accuracy.get(split))][:1]:
        score = accuracy[split]
        told = f"; the expected calibration error is {number(100 * error['value'])} %" if is_score(error) else ""
        share = f"{number(100 * score['value'])} ± {number(100 * score['error'])} % of {score['n']:,} samples"
        lines.append(f"The {SPLITS[split]} accuracy is {share}{told}.")
    tables = scores.get("outliers") or {}
    told = ", ".join(f"{number(table['free_energy']['auroc'], 4)} against {name}" for name, table in tables.items())
    lines += [f"AUROC by free energy: {told}."] if told else []
    if isinstance(n := scores.get("rollbacks"), int):
        lines.append(f"The guard went back to a good state {n} time{'' if n == 1 else 's'}." if n else "No divergence.")
    return lines
