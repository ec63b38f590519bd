"""One page of HTML that needs nothing else: styles and pictures are inside it."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A figure, or a PNG that is made already, with the name of its file and a caption that says how to read it.

    Charts are drawn light on dark where the reader prefers that; images keep their colors. `wide` ones take
    a whole row.
    """

    name: str
    caption: str
    figure: Figure | bytes
    chart: bool = True
    wide: bool = False


@dataclass(frozen=True)
class Section:
    """A heading, text, each line a paragraph, and pictures."""

    title: str
    text: str
    pictures: list[Picture] = field(default_factory=list)


def to_png(picture: Picture) -> bytes:
    """Return the picture as a PNG; margins around images and wide figures are cut."""
    if isinstance(picture.figure, bytes):
        return picture.figure
    buffer = io.BytesIO()
    trim: dict[str, Any] = {} if picture.chart and not picture.wide else {"bbox_inches": "tight", "pad_inches": 0.06}
    picture.figure.savefig(buffer, format="png", **trim)
    return buffer.getvalue()


def table(values: Mapping[str, Any], caption: str) -> str:
    """Return settings as a small table."""
    rows = "".join(f"<tr><th>{escape(key)}</th><td>{escape(_said(value))}</td></tr>" for key, value in values.items())
    return f"<table><caption>{escape(caption)}</caption><tbody>{rows}</tbody></table>"


def page(
    title: str,
    verdict: Sequence[str],
    messages: Sequence[str],
    settings: Mapping[str, Mapping[str, Any]],
    sections: Sequence[tuple[Section, Sequence[bytes]]],
) -> str:
    """Return the whole page; every section comes with the PNG of each of its pictures."""
    health = "".join(f"<li>{escape(text)}</li>" for text in messages)
    parts = [
        f"<h1>{escape(title)}</h1>",
        '<div class="verdict">' + "".join(f"<p>{escape(text)}</p>" for text in verdict),
        f'<ul class="health">{health}</ul>' if health else "",
        "</div>",
        '<details><summary>Configuration</summary><div class="tables">',
        *(table(values, name) for name, values in settings.items()),
        "</div></details>",
    ]
    for section, images in sections:
        text = "".join(f"<p>{escape(line)}</p>" for line in section.text.splitlines())
        parts.append(f"<section><h2>{escape(section.title)}</h2>{text}<div class='figures'>")
        parts += [_figure(picture, png) for picture, png in zip(section.pictures, images, strict=True)]
        parts.append("</div></section>")
    return _PAGE.format(title=escape(title), style=_STYLE, body="\n".join(part for part in parts if part))


def _figure(picture: Picture, png: bytes) -> str:
    classes = " ".join(name for name in ("chart", "wide") if getattr(picture, name))
    data = base64.b64encode(png).decode("ascii")
    caption = escape(picture.caption)
    return (
        f'<figure class="{classes}"><img alt="{escape(picture.name)}: {caption}" '
        f'src="data:image/png;base64,{data}"><figcaption>{caption}</figcaption></figure>'
    )


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value in ({}, [], ""):
        return "–"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_said(item)}" for key, item in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_said(item) for item in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body><main>
{body}
</main></body>
</html>
"""

_STYLE = """
:root { --ink: #24292f; --soft: #57606a; --paper: #fff; --card: #f6f8fa; --line: #d8dee4; --mark: #0072b2;
  --warn: #d55e00 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9aa4af; --paper: #0f1419; --card: #171d24; --line: #2d353e; --mark: #56b4e9;
    --warn: #e69f00 }
  figure.chart img { filter: invert(.93) hue-rotate(180deg) }
  figure:not(.chart) img { filter: brightness(.92) }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1rem 4rem }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 1rem; overflow-wrap: anywhere }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .3rem; padding-top: 1.2rem; border-top: 1px solid var(--line) }
p { margin: .4rem 0 }
section > p, figcaption { color: var(--soft) }
.verdict { background: var(--card); border-left: 4px solid var(--mark); border-radius: 6px; padding: .8rem 1.1rem }
.verdict p:first-child { font-size: 1.08rem }
.health { margin: .5rem 0; padding-left: 1.2rem }
.health li::marker { content: "! "; color: var(--warn); font-weight: 700 }
details { margin: 1.2rem 0 }
summary { cursor: pointer; font-weight: 600 }
.tables { columns: 3 15rem; column-gap: 2rem }
table { border-collapse: collapse; width: 100%; break-inside: avoid; font-size: .84rem }
caption { text-align: left; font-weight: 600; padding: .6rem 0 .2rem }
th { text-align: left; font-weight: 400; color: var(--soft); padding: .12rem .8rem .12rem 0; vertical-align: top }
td { text-align: right; font-variant-numeric: tabular-nums; padding: .12rem 0; overflow-wrap: anywhere }
tr { border-bottom: 1px solid var(--line) }
.figures { display: grid; gap: 1.2rem; margin-top: .8rem;
  grid-template-columns: repeat(auto-fill, minmax(min(25rem, 100%), 1fr)) }
figure { margin: 0 }
figure.wide { grid-column: 1 / -1 }
figure img { display: block; width: 100%; height: auto; border-radius: 4px }
figcaption { font-size: .85rem; line-height: 1.4; margin-top: .3rem }
@media print { figure { break-inside: avoid } }
"""
