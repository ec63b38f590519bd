"""The command that shows the live page: `serve`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from harmonium.cli.options import DataDir, Json, Quiet
from harmonium.cli.show import Show
from harmonium.cli.training import RUNS


def serve_command(
    folder: Annotated[Path, typer.Argument(help="Where the runs are.")] = RUNS,
    host: Annotated[
        str, typer.Option(help="Address to serve at; any other than this computer's own is open to the network.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port; 8765 or any free one if left out.", show_default=False)
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open a browser.")] = True,
    notebook: Annotated[bool, typer.Option("--notebook", help="Let notebooks on this computer show it.")] = False,
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Watch the runs of a folder live in a browser, and play with their models.

    Curves as they grow, chains that move, filters, several runs on one plot; draw and see what a model makes of it; a
    guided tour of eight steps. Only this computer can reach the page, and only with the link that is printed. It reads
    nothing outside of the folder and the data directory, and writes nothing unless you stop or resume a run.

      harmonium serve

      harmonium serve runs --port 8000 --no-open
    """
    from harmonium.web.serve import Settings, prepare

    show = Show(as_json=as_json, quiet=quiet)
    folder.mkdir(parents=True, exist_ok=True)
    settings = Settings(folder, host, port, None if data_dir is None else Path(data_dir), notebook)
    if not settings.is_local:
        show.warn(
            f"The page is served at {host}: anybody on the network who has the link can look at the runs, stop and "
            "resume them. The connection is not encrypted. Better: serve it here and forward the port by ssh -L."
        )

    serving = prepare(settings)
    show.event("serving", link=serving.link, folder=str(folder))
    show.line(f"The runs in {folder} are shown at\n\n  {serving.link}\n")
    show.line("The link is the key. Ctrl-C ends the page; trainings go on.")
    if open_browser:
        webbrowser.open(serving.link)
    serving.run()
