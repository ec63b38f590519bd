"""What the user sees: a progress bar on a terminal, plain lines elsewhere, JSON lines for machines, or nothing."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from harmonium.learning import Callback, Training
from harmonium.runs import Config, Run

_SECONDS = 1.0  # between two plain lines, and a tenth of the time so far
_REFRESH = 0.1  # between two moves of the bar

MONITORS = {
    "reconstruction": "reconstruction {:.4g}",
    "free_energy_gap": "gap {:+.3g}",
    "pseudo_likelihood": "pseudo-likelihood {:.4g}",
    "validation_log_likelihood": "valid log-likelihood {:.2f}",
    "r_hat": "R-hat {:.2f}",
    "validation_accuracy": "valid accuracy {:.2%}",
    "validation_loss": "valid L {:.3f}",
    "validation_generation_loss": "valid L_gen {:+.3f}",
}
"""The monitors that are shown while a model learns, and how."""

SCORES = {"free_energy": "free energy", "slope": "gradient norm", "confidence": "max softmax"}
"""The scores that tell outliers from data, in words."""


class Show:
    """Prints events in one of the styles `terminal`, `plain`, `json` and `quiet`."""

    def __init__(self, *, as_json: bool = False, quiet: bool = False) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self.style = "json" if as_json else "quiet" if quiet else "terminal" if self.console.is_terminal else "plain"

    def event(self, name: str, **fields: Any) -> None:
        """Print a JSON line, in the style `json` only."""
        if self.style == "json":
            print(json.dumps({"event": name, **fields}), flush=True)

    def line(self, text: str = "") -> None:
        """Print a line for people."""
        if self.style in ("terminal", "plain"):
            self.console.print(text, markup=False)

    def warn(self, text: str) -> None:
        """Print a message that should not be missed, on standard error."""
        self.event("message", text=text)
        if self.style in ("terminal", "plain"):
            print(f"! {text}", file=sys.stderr, flush=True)

    def config(self, folder: Path, config: Config) -> None:
        """Print the whole resolved configuration."""
        self.event("config", folder=str(folder), config=config.model_dump())
        self.line(f"# {folder / 'config.toml'}")
        self.line(config.to_toml())

    def table(self, table: Table) -> None:
        """Print a table."""
        if self.style in ("terminal", "plain"):
            self.console.print(table)

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
    def progress(self, epochs: int) -> Iterator[Callback]:
        """Give the callback that shows how the training goes."""
        if self.style != "terminal":
            yield Lines(self)
            return
        columns = (
            TextColumn("epoch"),
            MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=9)),
            BarColumn(20, table_column=Column(min_width=10)),
            TimeRemainingColumn(table_column=Column(no_wrap=True, min_width=7)),
            TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
        )
        with Progress(*columns, console=self.console, expand=True) as bar:
            yield Bar(bar, bar.add_task("", total=epochs))


class Lines(Callback):
    """A line now and then, less and less often, and at the end; in JSON every epoch."""

    def __init__(self, show: Show) -> None:
        self.show = show
        self.start = self.last = time.monotonic()

    def on_epoch(self, training: Training, record: dict[str, Any]) -> None:
        """Print the epoch."""
        self.show.event("epoch", **record)
        now = time.monotonic()
        if now - self.last >= max(_SECONDS, 0.1 * (now - self.start)) or training.epoch in (1, training.epochs):
            self.last = now
            self.show.line(f"epoch {training.epoch}/{training.epochs}  update {training.update}  {monitors(record)}")


class Bar(Callback):
    """A progress bar that moves within epochs, with the newest monitors beside it."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self.bar, self.task = bar, task
        self.last = 0.0

    def on_update(self, training: Training) -> None:
        """Move the bar now and then."""
        now = time.monotonic()
        if now - self.last >= _REFRESH:
            self.last = now
            self.bar.update(self.task, completed=training.epoch + training.position / max(1, len(training.batches)))

    def on_epoch(self, training: Training, record: dict[str, Any]) -> None:
        """Show the monitors."""
        self.bar.update(self.task, completed=training.epoch, description=monitors(record))


def monitors(record: dict[str, Any]) -> str:
    """Return the monitors of a record in one line.

    >>> monitors({"epoch": 1, "reconstruction": 0.25, "r_hat": 1.0})
    'reconstruction 0.25  R-hat 1.00'
    """
    parts = [text.format(record[name]) for name, text in MONITORS.items() if record.get(name) is not None]
    if record.get("rollbacks"):
        parts.append(f"rollbacks {record['rollbacks']}")
    if record.get("dead"):
        parts.append(f"dead {record['dead']}/{record['n_hidden']}")
    return "  ".join(parts)


def print_scores(show: Show, run: Run, scores: dict[str, Any]) -> None:
    """Print what a classifier does, the log-likelihoods with their bounds, and how the data were made."""
    show.event("evaluation", folder=str(run.folder), **scores)
    print_classes(show, scores)
    if "likelihood" in scores:
        show.line(f"log-likelihood: {scores['likelihood']}")
    for split in ("train", "valid", "test"):
        if split in scores:
            show.line(f"{split:>5} log-likelihood  {scores[split]['text']} nats, mean of {scores[split]['n']:,}")
    if "baseline" in scores:
        show.line(f"      for comparison, {scores['baseline']['name']}: {scores['baseline']['value']:.4g} nats")
    if "energy_distance" in scores:
        distance = scores["energy_distance"]
        show.line(f"      samples against data: energy distance {distance['value']:.2g}, p = {distance['p_value']:.3g}")
    if "law" in scores:
        show.line(f"      of {scores['law']}: not the probability of gray levels")
    if "note" in scores:
        show.line(f"      data: {scores['note']}")


def print_classes(show: Show, scores: dict[str, Any]) -> None:
    """Print accuracies, the calibration error, how outliers are told apart, and the returns of the guard."""
    for split, score in scores.get("accuracy", {}).items():
        show.line(f"{split:>5} accuracy  {score['value']:.2%} ± {score['error']:.2%} of {score['n']:,}")
    if "calibration_error" in scores:
        error = scores["calibration_error"]
        show.line(f"      expected calibration error  {error['value']:.2%} on {error['n']:,} {error['split']} samples")
    for name, table in scores.get("outliers", {}).items():
        told = ", ".join(
            f"{SCORES[score]} {table[score]['auroc']:.4f} ({table[score]['fpr95']:.1%})"
            for score in SCORES
            if score in table
        )
        show.line(f"      AUROC (FPR at 95 % recall) against {name}: {told}")
    if "rollbacks" in scores:
        show.line(f"      returns of the guard to a good state: {scores['rollbacks']}")
