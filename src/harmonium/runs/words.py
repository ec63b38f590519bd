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


def class_lines(scores: Mapping[str, Any]) -> list[str]:
    """Return accuracies and the calibration error; where they are known, outliers and the returns of the guard."""
    lines = [
        f"{split:>5} accuracy  {score['value']:.2%} ± {score['error']:.2%} of {score['n']:,}"
        for split, score in scores["accuracy"].items()
    ]
    error = scores["calibration_error"]
    lines.append(f"      expected calibration error  {error['value']:.2%} on {error['n']:,} {error['split']} samples")
    for name, table in scores.get("outliers", {}).items():
        told = ", ".join(
            f"{said} {table[score]['auroc']:.4f}{_error(table[score])} ({table[score]['fpr95']:.1%})"
            for score, (said, _) in OUTLIER_SCORES.items()
        )
        lines.append(f"      AUROC (FPR at 95 % recall) against {name}: {told}")
    lines += [f"      {told}"] if (told := weight_sentence(scores)) else []
    if "rollbacks" in scores:
        lines.append(f"      returns of the guard to a good state: {scores['rollbacks']}")
    return lines


def weight_sentence(scores: Mapping[str, Any]) -> str:
    """Return what the loss of a joint model was if it is not `-ln p(x, y)`, in which both parts have the weight 1.

    >>> weight_sentence({"weights": {"classification": 1.0, "generation": 0.05}})
    'Trained by L_clf + 0.05 L_gen, which is not −ln p(x, y): that has no weight between its parts.'
    """
    weights = scores.get("weights")
    if not weights or not weights["generation"] or weights["classification"] == weights["generation"] == 1:
        return ""
    first = "L_clf" if weights["classification"] == 1 else f"{weights['classification']:g} L_clf"
    loss = f"{first} + {weights['generation']:g} L_gen"
    return f"Trained by {loss}, which is not −ln p(x, y): that has no weight between its parts."


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
    told = ", ".join(
        f"{number(table['free_energy']['auroc'], 4)}{_error(table['free_energy'])} against {name}"
        for name, table in tables.items()
    )
    lines += [f"AUROC by free energy: {told}."] if told else []
    lines += [said] if (said := weight_sentence(scores)) else []
    if isinstance(n := scores.get("rollbacks"), int):
        lines.append(f"The guard went back to a good state {n} time{'' if n == 1 else 's'}." if n else "No divergence.")
    return lines


def _error(score: Mapping[str, Any]) -> str:
    return f" ± {score['error']:.4f}" if "error" in score else ""
