"""The command that fetches public data sets: `fetch`."""

from __future__ import annotations

from typing import Annotated

import typer

from harmonium.cli.options import DataDir, Json, Quiet
from harmonium.cli.show import Show
from harmonium.data import fetch
from harmonium.data.directory import FETCHED


def fetch_command(
    names: Annotated[list[str], typer.Argument(metavar="NAME …", help=f"What to fetch: {', '.join(FETCHED)}.")],
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fetch public data sets by name into the data directory.

    Each file is looked for at one public mirror after another and kept only if its SHA-256 is the known one. Files that
    are there already stay. All other commands read from the directory and never use the network.

      harmonium fetch mnist --data-dir data
    """
    show = Show(as_json=as_json, quiet=quiet)
    for name in names:
        paths = fetch(name, data_dir)
        show.event("fetched", data=name, paths=[str(path) for path in paths])
        show.line(f"{name}: {len(paths)} files in {paths[0].parent}, checked")
