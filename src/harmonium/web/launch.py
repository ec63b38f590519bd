"""The page in a process of its own: for a training that is watched, and for notebooks."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import quote


@dataclass(eq=False)
class Launched:
    """A page that is being served. In a notebook it shows itself inside the cell; `close()` ends it."""

    link: str
    process: subprocess.Popen[str]
    height: int = 720

    def close(self) -> None:
        """End the page; runs that it trains go on."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _repr_html_(self) -> str:
        """Return a frame with the page in it."""
        return f'<iframe src="{escape(self.link)}" width="100%" height="{self.height}" title="Harmonium"></iframe>'


def launch(
    folder: str | Path, *, run: str | None = None, notebook: bool = False, data_dir: str | None = None
) -> Launched:
    """Serve a folder of runs in a new process, at any free port of this computer, until it is closed or we end.

    The link leads to one run if it is named.
    """
    options = (["--notebook"] if notebook else []) + ([] if data_dir is None else ["--data-dir", data_dir])
    command = [sys.executable, "-m", "harmonium.cli", "serve", str(folder), "--port", "0", "--no-open", "--json"]
    process = subprocess.Popen(
        [*command, *options],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    line = process.stdout.readline() if process.stdout is not None else ""
    if not line:
        with process:  # which waits for its end
            pass
        raise ValueError(f"The page of {folder} could not be served: its process ended with code {process.returncode}.")
    link = str(json.loads(line)["link"])
    if run is not None:
        link = link.replace("#/?", f"#/run/{quote(run, safe='')}?")
    launched = Launched(link, process)
    atexit.register(launched.close)
    return launched


def show(folder: str | Path = "runs", *, run: str | None = None, height: int = 720) -> Launched:
    """Show the runs of a folder, or one of them, live inside the cell of a notebook on this computer.

    The link in the output is a key to the page for as long as it is served.
    """
    launched = launch(folder, run=run, notebook=True)
    launched.height = height
    return launched
