"""What the numbers of a run say, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from harmonium.runs.words import SPLITS, is_score, number

KINDS = {
    "exact": "exact, since Z was summed over all states",
    "sandwich": "log Z by annealed importance sampling in both directions; the bounds hold with three standard errors",
    "ais": "log Z by annealed importance sampling, whose errors make likelihoods look better than they are",
    "reverse-ais": "log Z by reverse annealed importance sampling, whose errors make likelihoods look worse",
}


def verdict(
    note: str,
    evaluation: Mapping[str, Any] | None,
    records: Sequence[Mapping[str, Any]],
    spread: float | None = None,
    own: Sequence[str] = (),
) -> list[str]:
    """Return a few sentences: the log-likelihood and its bounds, how it was found, the margin, and the data.

    `spread` is the standard deviation of log p over the samples, from which the error of their mean follows. `own` are
    the sentences of the kind of model, which come first.
    """
    scores = evaluation or {}
    nats = [*_likelihood(scores, spread), *_comparison(scores)] or [_running(scores, records)]
    lines = [*own, *nats]
    said = str(scores.get("note") or note)
    if said:
        lines.append(f"Data: {said}. Nats of data made otherwise cannot be compared with these.")
    return lines


def health(evaluation: Mapping[str, Any] | None, records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the health messages of the evaluation and of the training, each once, with the epoch of the latter."""
    found: dict[str, str] = {text: text for text in (evaluation or {}).get("messages") or ()}
    for record in records:
        for text in record.get("messages") or ():
            found.setdefault(text, f"From epoch {record.get('epoch', '?')}: {text}")
    return list(found.values())


def _likelihood(scores: Mapping[str, Any], spread: float | None) -> list[str]:
    parts = {split: scores[split] for split in SPLITS if is_score(scores.get(split))}
    if not parts:
        return []
    first, *others = parts
    score = parts[first]
    among = f" on {score['n']:,} samples" if isinstance(score.get("n"), int) else ""
    text = f"The {SPLITS[first]} log-likelihood is {_estimate(score)}{among}"
    if others:
        text += "; " + ", ".join(f"{SPLITS[name]} {number(parts[name]['value'])}" for name in others)
    kind = str(score.get("kind") or "")
    lines = [f"{text}. It is {KINDS[kind]}." if kind == "exact" else f"{text}."]
    if kind and kind != "exact":
        lines.append(f"How it was found: {KINDS.get(kind, kind)}.")
    if spread is not None and isinstance(score.get("n"), int):
        error = spread / math.sqrt(score["n"])
        lines.append(
            f"Other samples of the same size would move the mean by about {number(error)} nats (standard error)."
        )
    if score.get("trusted") is False:
        lines.append(f"Do not rely on this number: {score.get('note') or 'the method says that it is unreliable'}.")
    return lines


def _comparison(scores: Mapping[str, Any]) -> list[str]:
    lines = []
    baseline, test = scores.get("baseline") or {}, scores.get("test") or scores.get("valid") or {}
    if is_score(baseline) and is_score(test):
        margin = test["value"] - baseline["value"]
        told = f"{number(abs(margin))} nats {'better' if margin > 0 else 'worse'}"
        name = f"{baseline['name']}, " if baseline.get("name") else ""
        lines.append(f"The baseline, {name}reaches {number(baseline['value'])} nats: the model is {told}.")
    distance = scores.get("energy_distance")
    if isinstance(distance, Mapping) and isinstance(distance.get("p_value"), float):
        p = distance["p_value"]
        told = "cannot be told from" if p > 0.05 else "differ from"
        lines.append(
            f"Samples of the chains {told} held-out data: energy distance, permutation test, p = {number(p, 3)}."
        )
    return lines


def _running(scores: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> str:
    if scores.get("likelihood"):
        return f"Log-likelihood: {scores['likelihood']}."
    tracked = [record for record in records if _finite(record.get("log_likelihood"))]
    if not tracked:
        return "This run has not been evaluated: there is no log-likelihood yet."
    last = tracked[-1]
    held_out = "validation_log_likelihood" if _finite(last.get("validation_log_likelihood")) else "log_likelihood"
    name = "validation" if held_out.startswith("validation") else "training"
    error = f" ± {number(last['log_z_error'])}" if _finite(last.get("log_z_error")) else ""
    return (
        f"This run has not been evaluated. While it trained, the {name} log-likelihood was last followed at "
        f"{number(last[held_out])}{error} nats a sample: a running estimate, not a score."
    )


def _estimate(score: Mapping[str, Any]) -> str:
    """Return the value with its error and bounds, with the digits that the error allows."""
    error = score.get("error")
    if score.get("kind") == "exact" or not _finite(error):
        return f"{number(score['value'], 3)} nats a sample"
    digits = min(3, max(1, -math.floor(math.log10(error)))) if error else 2
    text = f"{number(score['value'], digits)} ± {number(error, digits)} nats a sample"
    if _finite(score.get("lower")) and _finite(score.get("upper")):
        text += f", between {number(score['lower'], digits)} and {number(score['upper'], digits)},"
    return text


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
