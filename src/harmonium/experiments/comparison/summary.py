"""What came of a comparison: nats below the truth, rule by rule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

Record = Mapping[str, Any]


def validation(record: Record) -> float:
    """Return the nats of validation data at the end of a run, −∞ if it diverged."""
    last = record["points"][-1][1] if record["points"] and not record["diverged"] else None
    return -math.inf if last is None else float(last)


def summarize(settings: Record, records: Sequence[Record]) -> dict[str, Any]:
    """Return the settings and, for each strength and rule, the curve of each seed: nats of test data below the truth.

    A run that diverged has None from there on.
    """
    results = []
    for strength in settings["strengths"]:
        for rule in settings["rules"]:
            own = [r for r in records if (r["strength"], r["rule"]) == (strength, rule)]
            tried = [r for r in own if r["seed"] == settings["seeds"]]
            raced = [r for r in own if r["seed"] < settings["seeds"]]
            results.append(
                {
                    "strength": strength,
                    "rule": rule,
                    "rate": raced[0]["rate"],
                    "validation": {f"{r['rate']:g}": v if math.isfinite(v := validation(r)) else None for r in tried},
                    "seconds": raced[0]["times"],
                    "gaps": [_gaps(r) for r in raced],
                    "n_updates": round(fmean(r["n_updates"] for r in raced)),
                    "independent": fmean(r["truth"] - r["independent"] for r in raced),
                }
            )
    return {"settings": dict(settings), "results": results}


def _gaps(record: Record) -> list[float | None]:
    found = [None if test is None else record["truth"] - test for _, _, test in record["points"]]
    return found + [None] * (len(record["times"]) - len(found))


def ends(result: Record) -> list[float]:
    """Return how many nats each seed lies below the truth at the end, those that diverged left out."""
    return [gaps[-1] for gaps in result["gaps"] if gaps[-1] is not None]


def table_of(summary: Record) -> str:
    """Return the table: nats below the truth at the end, mean ± standard deviation over the seeds, and the rates."""
    settings = summary["settings"]
    strengths = settings["strengths"]
    head = " | ".join(f"strength {strength:g}" for strength in strengths)
    lines = [f"| objective | {head} | rates | updates |", "|---" * (len(strengths) + 3) + "|"]
    for rule in settings["rules"]:
        own = [r for r in summary["results"] if r["rule"] == rule]
        cells = " | ".join(_cell(result) for result in own)
        rates = ", ".join(f"{result['rate']:g}" for result in own)
        updates = ", ".join(f"{result['n_updates']:,}" for result in own)
        lines.append(f"| {rule} | {cells} | {rates} | {updates} |")
    first = [next(r for r in summary["results"] if r["strength"] == strength) for strength in strengths]
    alone = " | ".join(f"{result['independent']:.3f}" for result in first)
    lines.append(f"| independent units | {alone} | | |")
    return "\n".join(lines) + "\n"


def _cell(result: Record) -> str:
    found = ends(result)
    n_lost = len(result["gaps"]) - len(found)
    text = f"{fmean(found):.3f} ± {stdev(found) if len(found) > 1 else 0.0:.3f}" if found else ""
    return f"{text} ({n_lost} diverged)".strip() if n_lost else text
