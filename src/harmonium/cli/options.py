"""The flags that several commands share."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print machine-readable lines of JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of all random numbers.", show_default=False)]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads to compute with.", show_default=False)]
DataDir = Annotated[
    str | None,
    typer.Option("--data-dir", envvar="HARMONIUM_DATA", help="Folder of the data files.", show_default=False),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Where to write; a name is chosen if left out.", show_default=False),
]
Watch = Annotated[bool, typer.Option("--watch", help="Watch it live in a browser.")]
UseSeed = Annotated[int, typer.Option("--seed", min=0, help="Seed of the random numbers.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the run that is in the output folder.")]


def as_settings(flags: dict[str, Any]) -> dict[str, Any]:
    """Return flags by their dotted names as nested settings; those that were not given are left out.

    >>> as_settings({"data.name": "moons", "model.n_hidden": None})
    {'data': {'name': 'moons'}}
    """
    settings: dict[str, Any] = {}
    for name, value in flags.items():
        if value is None:
            continue
        *sections, key = name.split(".")
        inner = settings
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[key] = value
    return settings


def parse_assignments(assignments: list[str]) -> dict[str, Any]:
    """Return `section.key=value` texts by their dotted names; values are read as TOML, else as text.

    >>> parse_assignments(["data.options.noise=0.05", "model.hidden=spin"])
    {'data.options.noise': 0.05, 'model.hidden': 'spin'}
    """
    result: dict[str, Any] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or "." not in name:
            raise ValueError(f"--set takes section.key=value, such as --set data.options.noise=0.05. Got {text!r}.")
        try:
            result[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            result[name.strip()] = value
    return result
