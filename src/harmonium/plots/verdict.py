"""What the numbers of a run say, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from harmonium.runs.likelihood_words import errors, is_bound, rank, samples_sentences, simple_sentence
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
    own: Sequence[str] = (),
) -> list[str]:
    """Return a few sentences: the log-likelihood with its errors, how it was found, the best simple law, and the data.

    A model that is no better than that law is announced before anything else. `own` are the sentences of the kind of
    model, which come before those on the log-likelihood.
    """
    scores = evaluation or {}
    nats = _likelihood(scores) or [_running(scores, records)]
    compared = [simple_sentence(scores)] if "margin" in scores and "baseline" in scores else []
    tested = samples_sentences(scores["samples"]) if "samples" in scores else []
    announced = bool(compared) and rank(scores) != "better"
    lines = [*compared, *own, *nats, *tested] if announced else [*own, *nats, *compared, *tested]
    said = str(scores.get("note") or note)
    if said:
        has_nats = "likelihood" not in scores  # else it says why there are none
        warning = " Nats of data made otherwise cannot be compared with these." if has_nats else ""
        lines.append(f"Data: {said}.{warning}")
    return lines


def health(evaluation: Mapping[str, Any] | None, records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the health messages of the evaluation and of the training, each once, with the epoch of the latter."""
    found: dict[str, str] = {text: text for text in (evaluation or {}).get("messages") or ()}
    for record in records:
        for text in record.get("messages") or ():
            found.setdefault(text, f"From epoch {record.get('epoch', '?')}: {text}")
    return list(found.values())


def _likelihood(scores: Mapping[str, Any]) -> list[str]:
    parts = {split: scores[split] for split in SPLITS if is_score(scores.get(split))}
    if not parts:
        return []
    first, *others = parts
    score = parts[first]
    among = f" on {score['n']:,} samples" if isinstance(score.get("n"), int) else ""
    least = "at least " if is_bound(score) else ""
    text = f"The {SPLITS[first]} log-likelihood is {least}{_estimate(score)}{among}"
    if others:
        text += "; " + ", ".join(f"{SPLITS[name]} {_short(parts[name])}" for name in others)
    kind = str(score.get("kind") or "")
    lines = [f"{text}. It is {KINDS[kind]}." if kind == "exact" else f"{text}."]
    if kind and kind != "exact":
        method = kind.removesuffix(" bound")
        how = KINDS.get(method, method)
        if is_bound(score):
            of_z = "Z was summed over all states" if method == "exact" else how
            how = f"a lower bound, since hidden layers cannot be summed out; {of_z}"
        lines.append(f"How it was found: {how}.")
    if score.get("trusted") is False:
        lines.append(f"Do not rely on this number: {score.get('note') or 'the method says that it is unreliable'}.")
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
    error = errors({"error": last.get("log_z_error"), "spread": last.get(f"{held_out}_spread")})
    return (
        f"This run has not been evaluated. While it trained, the {name} log-likelihood was last followed at "
        f"{number(last[held_out])}{error} nats a sample: a running estimate, not a score."
    )


def _estimate(score: Mapping[str, Any]) -> str:
    """Return the value with its errors and bounds, with the digits that the errors allow."""
    known = [error for error in (score.get("error"), score.get("spread")) if _finite(error) and error]
    digits = min(3, max(2, -math.floor(math.log10(min(known))))) if known else 3
    text = f"{number(score['value'], digits)}{errors(score, digits)} nats a sample"
    if is_bound(score):  # from above nothing is known
        return text
    if score.get("kind") != "exact" and _finite(score.get("lower")) and _finite(score.get("upper")):
        text += f", between {number(score['lower'], digits)} and {number(score['upper'], digits)} by log Z,"
    return text


def _short(score: Mapping[str, Any]) -> str:
    return f"{number(score['value'])}{errors(score)}"


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
