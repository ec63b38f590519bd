"""Log-likelihoods in words: with both errors, beside the best simple law, and tests with what they could have seen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from harmonium.runs.words import SPLITS, number

_LEVEL = 0.05
_WHAT_TO_DO = (
    "Train it longer or at a lower rate, or give it more hidden units; look at the curves and the health messages."
)
_WHAT_TO_DO_WITH_A_NETWORK = (
    "A network is a density where its chains have the temperature of its law: noise = √(2 step_size), many small steps."
)
_WHAT_TO_DO_WITH_A_TABLE = (
    "Its columns may have little to do with each other, or too few rows are held out to show it: more rows would tell."
)


def errors(score: Mapping[str, Any], digits: int | None = None) -> str:
    """Return the errors that an estimate has, each with its name: that of log Z, and that of a mean over samples.

    >>> errors({"error": 0.04, "spread": 0.21})
    ' ± 0.04 (log Z) ± 0.21 (samples)'
    >>> errors({"error": 0.0004, "spread": 0.21}, 2)
    ' ± 0.0004 (log Z) ± 0.21 (samples)'
    """
    named = [(score.get("error"), "log Z"), (score.get("spread"), "samples")]
    return "".join(
        f" ± {error:.2g} ({name})"
        if digits is None or not round(error, digits)
        else f" ± {number(error, digits)} ({name})"
        for error, name in named
        if error
    )


def is_bound(score: Mapping[str, Any]) -> bool:
    """Say whether a log-likelihood is only known to be at least so large.

    >>> is_bound({"kind": "sandwich bound"}), is_bound({"kind": "sandwich"})
    (True, False)
    """
    return "bound" in str(score.get("kind")).split()


def in_short(score: Mapping[str, Any]) -> str:
    """Return an estimate in a few words: its value, the errors it has, and whether not to rely on it.

    >>> in_short({"value": -85.31, "error": 0.04, "spread": 0.21, "trusted": False})
    '-85.31 ± 0.04 (log Z) ± 0.21 (samples), do not rely on it'
    """
    doubt = ", do not rely on it" if score.get("trusted") is False else ""
    return f"{score['value']:.2f}{errors(score)}{doubt}"


def rank(scores: Mapping[str, Any]) -> str:
    """Return "better", "worse" or "no better" than the best simple law, by two standard errors of the difference.

    >>> rank({"margin": {"value": -1.0, "error": 0.1, "spread": 0.2}})
    'worse'
    """
    margin = scores["margin"]
    two = 2 * _total(margin)
    return "better" if margin["value"] > two else "worse" if margin["value"] < -two else "no better"


def _total(score: Mapping[str, Any]) -> float:
    """Return both errors in one."""
    known = [score.get(name, 0.0) for name in ("error", "spread")]  # an infinite one is kept as None
    return math.hypot(*(math.inf if error is None else error for error in known))


def _decimals(score: Mapping[str, Any]) -> int:
    """Return how many decimals its error has where it is shown with two digits, at least two.

    >>> [_decimals({"spread": error}) for error in (3.0, 0.05, 0.213, 0.00391, 0.0)]
    [2, 2, 2, 4, 2]
    """
    total = _total(score)
    return next((n for n in range(2, 16) if round(total, n) == float(f"{total:.2g}")), 2)


def simple_sentence(scores: Mapping[str, Any]) -> str:
    """Return how the model stands to the best law without hidden units; below it, also what to do.

    >>> law = {"name": "a single Gaussian", "value": -1.0, "spread": 0.02}
    >>> simple_sentence({"test": {}, "baseline": law, "margin": {"value": 0.5, "error": 0.0, "spread": 0.01}})
    'Above the best simple law, a single Gaussian with −1.00 ± 0.02 (samples) nats, by 0.50 ± 0.01 (samples) nats.'
    """
    law, margin, place = scores["baseline"], scores["margin"], rank(scores)
    law_said = f"{law['name']} with {number(law['value'])}{errors(law)} nats"
    doubt = ", not to be relied on" if margin.get("trusted") is False else ""
    size = f"{number(abs(margin['value']), _decimals(margin))}{errors(margin)} nats{doubt}"
    if place == "better":
        return f"Above the best simple law, {law_said}, by {size}."
    of_kind = _WHAT_TO_DO_WITH_A_TABLE if "moments" in scores else _WHAT_TO_DO
    do = _WHAT_TO_DO_WITH_A_NETWORK if "law" in scores else of_kind
    bound = "The bound of the model" if is_bound(margin) else "The model"
    if place == "no better":
        where = "above" if margin["value"] > 0 else "below"
        told = f"{bound.lower()} lies {size} {where} the best simple law, {law_said}: less than two standard errors"
        return f"NO BETTER THAN SIMPLE: {told}. {do}"
    below = f"{bound.lower()} lies {size} below {law_said}, on the same samples"
    return f"WORSE THAN SIMPLE: {below}. {do} Until then that law is the better model of these data."


def samples_sentences(samples: Mapping[str, Any]) -> list[str]:
    """Return what the tests of samples against held-out data found, and what they could have found."""
    p, n = samples["p_value"], f"{samples['n']:,} samples against {samples['m']:,} held-out points"
    seen = "they differ" if p <= _LEVEL else "no difference seen"
    lines = [f"Energy distance of {n}: {samples['energy_distance']:.2g}, p = {p:.3g} by permutation: {seen}."]
    if "shift" in samples:
        shift, share = samples["shift"], samples["share"]
        known = [
            f"a shift by {shift:.2g} standard deviations" if shift else "not even a shift by two standard deviations"
        ]
        known.append(
            f"{100 * share:.0f} % of the points from a single Gaussian"
            if share
            else "not even all points from a single Gaussian"
        )
        lines.append(
            f"The test finds {', or '.join(known)}, four times out of five (at p ≤ {_LEVEL}); of smaller differences "
            "it says nothing."
        )
    if told := samples.get("told_apart"):
        share, error = 100 * told["accuracy"], 100 * told["error"]
        verdict = "they differ" if share - 50 > 3 * error else "no difference seen"
        lines.append(
            f"Nearest neighbors tell them apart in {share:.1f} ± {error:.1f} % of {told['n']:,} cases; 50 % is chance: "
            f"{verdict}."
        )
    return lines


def announcement(scores: Mapping[str, Any]) -> list[str]:
    """Return what is said before anything else: that the model is no better than a simple law, if so.

    >>> announcement({"note": "drawn"})
    []
    """
    return [simple_sentence(scores)] if "margin" in scores and rank(scores) != "better" else []


def likelihood_lines(scores: Mapping[str, Any]) -> list[str]:
    """Return the log-likelihoods with their errors, what they compare with, and how the data were made, line by line.

    A model that is no better than the best simple law is announced first.

    >>> likelihood_lines({"likelihood": "none", "note": "drawn"})
    ['log-likelihood: none', '      data: drawn']
    """
    lines = announcement(scores)
    lines += [f"log-likelihood: {scores['likelihood']}"] if "likelihood" in scores else []
    for split in reversed(SPLITS):
        if split in scores:
            least = ", at least" if is_bound(scores[split]) else ""
            lines.append(f"{split:>5} log-likelihood in nats{least}  {scores[split]['text']}")
    if "margin" in scores and rank(scores) == "better":
        lines.append(f"      {simple_sentence(scores)}")
    if "samples" in scores:
        lines += [f"      {line}" for line in samples_sentences(scores["samples"])]
    if "law" in scores:
        lines.append(f"      of {scores['law']}: not the probability of gray levels")
    return lines + ([f"      data: {scores['note']}"] if "note" in scores else [])


def likelihood_headline(scores: Mapping[str, Any]) -> str:
    """Return the test log-likelihood in short, with where the best simple law stands on the same samples.

    >>> law, margin = {"name": "the uniform law", "value": -1.0}, {"value": -1.0, "spread": 0.1}
    >>> likelihood_headline({"test": {"value": -2.0, "spread": 0.1}, "baseline": law, "margin": margin})
    'log-likelihood -2.00 ± 0.1 (samples), WORSE than the uniform law: -1.00'
    """
    if "test" not in scores:
        return ""
    told = f"log-likelihood {'≥ ' if is_bound(scores['test']) else ''}{in_short(scores['test'])}"
    if "margin" not in scores:
        return told
    law, place = scores["baseline"], rank(scores)
    said = {"better": "", "worse": "WORSE than ", "no better": "NO BETTER than "}[place]
    return f"{told}, {said}{law['name']}: {law['value']:.2f}"
