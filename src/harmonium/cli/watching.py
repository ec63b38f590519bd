"""A training that is watched: the live page beside it, in a process of its own."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from types import TracebackType

from harmonium.cli.show import Show
from harmonium.cli.stopped import Stopped
from harmonium.runs import RunFolder


class Watching:
    """Opens the page of a run when there is one; on a terminal it stays until Ctrl-C, elsewhere it ends with the run.

    It also stays where the run was stopped from the page, so that it can be resumed there.
    """

    def __init__(self, wanted: bool, show: Show, data_dir: str | None = None) -> None:
        self.wanted, self.show, self.data_dir = wanted, show, data_dir
        self.folder: Path | None = None

    def __enter__(self) -> Watching:
        return self

    def open(self, folder: Path) -> None:
        """Serve the folder around a run, and open a browser at it."""
        if not self.wanted:
            return
        from harmonium.web.launch import launch  # here, since only who watches needs it

        self.folder = folder
        self.page = launch(folder.resolve().parent, run=folder.resolve().name, data_dir=self.data_dir)
        self.show.event("serving", link=self.page.link)
        self.show.line(f"watch it at {self.page.link}")
        if self.show.console.is_terminal:
            webbrowser.open(self.page.link)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stay, and end the page."""
        if self.folder is None:
            return
        ended_well = error is None or (isinstance(error, Stopped) and RunFolder(self.folder).asked_to_stop)
        try:
            if ended_well and sys.stdin.isatty() and self.show.style == "terminal":
                self.show.line("The page stays until Ctrl-C.")
                self.page.process.wait()
        except KeyboardInterrupt:
            self.show.line()
        finally:
            self.page.close()
