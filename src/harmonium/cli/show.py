"""What the user sees: a progress bar on a terminal, plain lines elsewhere, JSON lines for machines, or nothing."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from rich.text import Text

from harmonium import workers
from harmonium.cli.printable import printable
from harmonium.data import Column as TableColumn
from harmonium.data.column import EPOCH
from harmonium.learning import Callback, Training
from harmonium.runs import Config, Kind, Run
from harmonium.runs.config import departures

_SECONDS = 1.0  # between two plain lines, and a tenth of the time so far
_REFRESH = 0.1  # between two moves of the bar
_WIDTH = 80  # columns of a plain line
_BAR = 33  # columns that the bar and its numbers take


class Show:
    """Prints events in one of the styles `terminal`, `plain`, `json` and `quiet`."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        quiet = quiet or not workers.is_first()  # one of several workers speaks for all
        as_json = as_json and workers.is_first()
        self.style = "json" if as_json else "quiet" if quiet else "terminal" if self.console.is_terminal else "plain"

    def event(self, name: str, **fields: Any) -> None:
        """Print a JSON line, in the style `json` only."""
        if self.style == "json":
            print(json.dumps({"event": name, **fields}), flush=True)

    def line(self, text: str = "") -> None:
        """Print a line for people."""
        if self.style in ("terminal", "plain"):
            self.console.print(printable(text), markup=False, emoji=False)

    def warn(self, text: str) -> None:
        """Print a message that should not be missed, on standard error."""
        self.event("message", text=text)
        if self.style in ("terminal", "plain"):
            print(f"! {printable(text)}", file=sys.stderr, flush=True)

    def columns(self, columns: Sequence[TableColumn]) -> None:
        """Print what the columns of a table were taken for, and how to overrule it."""
        if not columns:
            return
        table = Table("column", "type", "values", "", box=None, pad_edge=False)
        for column in sorted(columns, key=lambda column: column.place):
            table.add_row(*map(cell, (column.name, column.type, values_of(column), column.note)))
        self.event("columns", columns=[{"name": c.name, "type": c.type, "note": c.note} for c in columns])
        self.table(table)
        self.line("Overrule a type with --columns name=type,name=skip.")

    def config(self, folder: Path, config: Config, *, whole: bool = False) -> None:
        """Print what differs from the recipe, or the whole configuration."""
        self.event("config", folder=str(folder), config=config.model_dump())
        if whole:
            self.line(f"# {folder / 'config.toml'}")
            self.line(config.to_toml())
            return
        differ = departures(config)
        name = Path(config.data.name).name
        self.line(f"{config.model.kind} on {name}, settings of the recipe{' but for' if differ else ''}")
        for setting, (value, usual) in differ.items():
            self.line(f"  {setting} = {value}" + (f"  (recipe: {usual})" if usual not in (None, "", [], {}) else ""))
        self.line(f"all settings: {folder / 'config.toml'}, or --show-config")

    def scores(self, run: Run, scores: dict[str, Any]) -> None:
        """Print the scores of a run, as its kind of model says them."""
        self.event("evaluation", folder=str(run.folder), **scores)
        for line in run.kind.lines(scores):
            self.line(line)

    def table(self, table: Table) -> None:
        """Print a table."""
        if self.style in ("terminal", "plain"):
            self.console.print(table, soft_wrap=False)  # in the width that there is

    @contextmanager
    def warnings(self) -> Iterator[None]:
        """Show warnings within the block as readable lines."""

        def show(message: Warning | str, *_args: Any, **_kwargs: Any) -> None:
            self.warn(str(message))

        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show
            yield

    @contextmanager
    def progress(self, epochs: int, watched: Mapping[str, str] = Kind.watched) -> Iterator[Callback]:
        """Give the callback that shows how the training goes, with the monitors that are watched."""
        if self.style != "terminal":
            yield Lines(self, watched)
            return
        columns = (
            TextColumn("epoch"),
            MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=9)),
            BarColumn(8, table_column=Column(min_width=6)),
            TimeRemainingColumn(table_column=Column(no_wrap=True, min_width=7)),
            TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
        )
        with Progress(*columns, console=self.console, expand=True) as bar:
            yield Bar(bar, bar.add_task("", total=epochs), watched)


class Lines(Callback):
    """A line now and then, less and less often, and at the end; in JSON every epoch."""

    def __init__(self, show: Show, watched: Mapping[str, str]) -> None:
        self.show, self.watched = show, watched
        self.start = self.last = time.monotonic()

    def on_epoch(self, training: Training, record: dict[str, Any]) -> None:
        """Print the epoch."""
        self.show.event("epoch", **record)
        now = time.monotonic()
        if now - self.last >= max(_SECONDS, 0.1 * (now - self.start)) or training.epoch in (1, training.epochs):
            self.last = now
            text = monitors(record, self.watched, max(40, _WIDTH - len(f"epoch {training.epoch}/{training.epochs}  ")))
            self.show.line(f"epoch {training.epoch}/{training.epochs}  {text}")


class Bar(Callback):
    """A progress bar that moves within epochs, with the newest monitors beside it."""

    def __init__(self, bar: Progress, task: TaskID, watched: Mapping[str, str]) -> None:
        self.bar, self.task, self.watched = bar, task, watched
        self.last = 0.0

    def on_update(self, training: Training) -> None:
        """Move the bar now and then."""
        now = time.monotonic()
        if now - self.last >= _REFRESH:
            self.last = now
            self.bar.update(self.task, completed=training.epoch + training.position / max(1, len(training.batches)))

    def on_epoch(self, training: Training, record: dict[str, Any]) -> None:
        """Show the monitors."""
        text = monitors(record, self.watched, self.bar.console.width - _BAR)
        self.bar.update(self.task, completed=training.epoch, total=training.epochs, description=text)


def cell(text: str) -> Text:
    """Return text for the cell of a table, as it is: brackets are no markup."""
    return Text(printable(text))


def values_of(column: TableColumn) -> str:
    """Return the values of a column in a few words.

    >>> values_of(TableColumn("sex", "binary", ("female", "male")))
    'female, male'
    >>> values_of(TableColumn("since", "date", low=18262, high=18627.5))
    '2020-01-01 to 2020-12-31'
    """
    if column.type == "date":
        return " to ".join(f"{EPOCH + timedelta(days=day):%Y-%m-%d}" for day in (column.low, column.high))
    if column.is_numeric:
        return f"{column.low:g} to {column.high:g}"
    levels = ", ".join(map(str, column.levels[:4]))
    return f"{levels} … ({len(column.levels)})" if len(column.levels) > 4 else levels


def monitors(record: dict[str, Any], watched: Mapping[str, str], width: int = _WIDTH) -> str:
    """Return the monitors of a record in one line, the most telling first; what does not fit is left out as a whole.

    A count of 0 is left out, too.

    >>> monitors({"epoch": 1, "reconstruction": 0.25, "r_hat": 1.0}, Kind.watched)
    'reconstruction 0.25  R-hat 1.00'
    >>> monitors({"epoch": 1, "reconstruction": 0.25, "r_hat": 1.0}, Kind.watched, 25)
    'reconstruction 0.25'
    """
    found = {name: record.get(name) for name in watched}
    parts = [
        watched[name].format(x, **record)
        for name, x in found.items()
        if x is not None and not (x == 0 and type(x) is int)
    ]
    if record.get("dead"):
        parts.append(f"dead {record['dead']}/{record['n_hidden']}")
    while len(parts) > 1 and len("  ".join(parts)) > width:
        parts.pop()
    return "  ".join(parts)
