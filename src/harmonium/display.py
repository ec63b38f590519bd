"""Small pictures and tables as HTML, for notebooks: plain text with SVG inside, no other package."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

BLUE, INK, SOFT = "#0072B2", "currentColor", "#6E7781"


def html_table(rows: Mapping[str, Any], caption: str = "") -> str:
    """Return names and values as a small table.

    >>> html_table({"rows": 3})
    '<table><tbody><tr><th style="text-align:left">rows</th><td style="text-align:left">3</td></tr></tbody></table>'
    """
    cell = 'style="text-align:left"'
    body = "".join(
        f"<tr><th {cell}>{escape(str(name))}</th><td {cell}>{escape(str(value))}</td></tr>"
        for name, value in rows.items()
    )
    head = f'<caption style="text-align:left"><b>{escape(caption)}</b></caption>' if caption else ""
    return f"<table>{head}<tbody>{body}</tbody></table>"


def svg_curve(values: Sequence[float | None], title: str, *, width: int = 220, height: int = 90) -> str:
    """Return a line over the epochs with its first and last value; gaps where there is none."""
    points = [(i, v) for i, v in enumerate(values) if v is not None and math.isfinite(v)]
    if not points:
        return ""
    low, high = min(v for _, v in points), max(v for _, v in points)
    span, n = (high - low) or 1.0, max(1, len(values) - 1)
    top, bottom = 22, height - 16
    path = " ".join(
        f"{'M' if i == 0 else 'L'}{4 + (width - 8) * x / n:.1f},{bottom - (bottom - top) * (v - low) / span:.1f}"
        for i, (x, v) in enumerate(points)
    )
    return (
        f'<svg width="{width}" height="{height}" role="img" aria-label="{escape(title)}">'
        f'<text x="4" y="13" font-size="11" fill="{INK}">{escape(title)}</text>'
        f'<path d="{path}" fill="none" stroke="{BLUE}" stroke-width="1.5"/>'
        f'<text x="4" y="{height - 3}" font-size="10" fill="{SOFT}">{points[0][1]:.4g}</text>'
        f'<text x="{width - 4}" y="{height - 3}" font-size="10" fill="{SOFT}" text-anchor="end">'
        f"{points[-1][1]:.4g}</text></svg>"
    )


def svg_graph(layers: Mapping[str, str], ties: Iterable[Sequence[str]], given: Iterable[str] = ()) -> str:
    """Return layers as boxes in a column, the last on top, with a line for each coupling of two layers or more.

    `layers` has what a box says below its name; those that are given are dashed. A coupling of a layer with itself is a
    loop; one of three layers or more meets in a dot.
    """
    names, dashed = list(layers), set(given)
    wide, tall, gap = 190, 34, 30
    place = {name: 8 + (len(names) - 1 - i) * (tall + gap) for i, name in enumerate(names)}
    height = len(names) * (tall + gap) - gap + 16
    parts = []
    for tied in ties:
        ends = list(dict.fromkeys(tied))
        if len(tied) < 2:
            continue
        if len(ends) == 1:
            y = place[ends[0]] + tall / 2
            parts.append(f'<path d="M200,{y - 8} c34,-12 34,28 0,16" fill="none" stroke="{BLUE}" stroke-width="1.5"/>')
            continue
        ys = sorted(place[name] + tall / 2 for name in ends)
        reach = 28 * (len(names) > 2) * (ys[-1] - ys[0] > tall + gap)
        if reach or len(ends) > 2:  # around what lies between
            middle = (ys[0] + ys[-1]) / 2
            parts += [
                f'<path d="M200,{y} Q{228 + reach},{y} {228 + reach},{middle}" fill="none" stroke="{BLUE}"/>'
                for y in ys
            ]
            parts.append(f'<circle cx="{228 + reach}" cy="{middle}" r="3" fill="{BLUE}"/>' if len(ends) > 2 else "")
        else:
            parts.append(f'<line x1="105" x2="105" y1="{ys[0]}" y2="{ys[1]}" stroke="{BLUE}" stroke-width="1.5"/>')
    for name, text in layers.items():
        dash = ' stroke-dasharray="4 3"' if name in dashed else ""
        y = place[name]
        parts.append(
            f'<rect x="10" y="{y}" width="{wide}" height="{tall}" rx="6" fill="white" stroke="{BLUE}"{dash}/>'
            f'<text x="105" y="{y + 14}" font-size="12" text-anchor="middle" fill="#24292F">{escape(name)}</text>'
            f'<text x="105" y="{y + 28}" font-size="10" text-anchor="middle" fill="{SOFT}">{escape(_cut(text))}</text>'
        )
    return f'<svg width="290" height="{height:.0f}" role="img" aria-label="layers and couplings">{"".join(parts)}</svg>'


def _cut(text: str, n: int = 34) -> str:
    return text if len(text) <= n else text[: n - 1] + "…"
