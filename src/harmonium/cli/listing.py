"""The command that lists: `list`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from harmonium.cli.opening import open_any
from harmonium.cli.options import Json, Quiet
from harmonium.cli.show import Show, cell
from harmonium.cli.training import RUNS
from harmonium.experiments import Experiment
from harmonium.runs import Run, find_folders, varying_settings
from harmonium.runs.folder import Listed


def list_command(
    folder: Annotated[Path, typer.Argument(help="Where the runs are.")] = RUNS,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the runs and experiments in a folder with their scores and the settings that vary.

    With --json a line for each has all settings and all scores. A folder that cannot be read is listed as such.
    """
    show = Show(as_json=as_json, quiet=quiet)
    folders = find_folders(folder) if folder.is_dir() else []
    if not folders:
        show.line(f"There are no runs in {folder}. Make one with: harmonium demo")
        return
    table = Table(
        Column("run", overflow="fold"), "data, model, size", "epochs", "score", "what varies", box=None, pad_edge=False
    )
    opened = [read(path) for path in folders]
    runs = [found[0] for found in opened if not isinstance(found, str) and isinstance(found[0], Run)]
    varying = dict(zip((run.folder for run in runs), varying_settings(runs), strict=True))
    for path, found in zip(folders, opened, strict=True):
        name = str(path.relative_to(folder)) if path != folder else str(path)
        if isinstance(found, str):
            show.event("run", folder=str(path), error=found)
            table.add_row(*map(cell, (name, "–", "–", f"cannot be read: {found}", "")))
            continue
        run, line, scores = found
        show.event("run", **everything(run, line, scores))
        varies = ", ".join(f"{key} {value}" for key, value in varying.get(path, {}).items())
        score = line.score.removeprefix("log-likelihood ") or "–"
        what, epochs = f"{Path(line.data).name}, {line.model}, {line.size}", f"{line.n_epochs}/{line.epochs}"
        table.add_row(*map(cell, (name, what, epochs, score, varies)))
    show.table(table)


def read(path: Path) -> tuple[Run | Experiment, Listed, dict[str, Any]] | str:
    """Return what is in a folder, or in words why it cannot be read: the others are listed all the same."""
    try:
        found = open_any(path)
        return found, found.listed(), found.evaluation() or {}
    except (ValueError, OSError, LookupError, TypeError, AttributeError, RecursionError) as error:
        return " ".join((str(error) or type(error).__name__).split())


def everything(run: Run | Experiment, line: Listed, scores: dict[str, Any]) -> dict[str, Any]:
    """Return all that is known of a run as plain values."""
    return {
        "folder": str(run.folder),
        "data": line.data,
        "model": line.model,
        "epochs": line.n_epochs,
        "of_epochs": line.epochs,
        "score": line.score,
        "test": scores.get("test", {}),
        "accuracy": scores.get("accuracy", {}).get("test", {}),
        "settings": run.config.model_dump() if isinstance(run, Run) else run.settings(),
        "scores": scores,
    }
