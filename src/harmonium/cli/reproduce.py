"""The commands that repeat published experiments: `reproduce table1` and `reproduce faces`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from harmonium.cli.faces import faces_command
from harmonium.cli.options import DataDir, Json, Quiet, Threads
from harmonium.cli.show import Show
from harmonium.cli.signals import StopSignals
from harmonium.experiments.table1.cells import (
    PAPER,
    RECIPES,
    Cell,
    load_for_table,
    read_cells,
    score_cell,
    table_of,
    train_cell,
    within,
)
from harmonium.runs.atomic import write_atomic

group = typer.Typer(name="reproduce", help="Repeat published experiments.", no_args_is_help=True)
group.command("faces")(faces_command)


@group.command("table1")
def table1_command(
    data: Annotated[
        list[str] | None, typer.Option(help="mnist, fashion-mnist or cifar10; may be repeated.", show_default="all")
    ] = None,
    levels: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Levels N of the hidden units; may be repeated.", show_default="255, 1"),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, counted from 0.")] = 1,
    seed: Annotated[int | None, typer.Option(min=0, help="Only this seed.", show_default=False)] = None,
    budget: Annotated[
        float | None,
        typer.Option(min=0.1, help="Minutes on one core for a cell: more filters.", show_default="the recipe's"),
    ] = None,
    reading: Annotated[
        list[str] | None,
        typer.Option(
            help="How hidden units are read: sample (their states), mean, mode; may be repeated.", show_default="sample"
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the results; finished cells in it are kept.")] = Path(
        "runs/table1"
    ),
    threads: Threads = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Test errors of a support vector machine on features of N-level units (table 1 of Hwang et al. 2020).

    Each cell (data, levels, seed) is written to the folder when it is done. The same command goes on after a stop, also
    within the training of the filters.
    """
    show = Show(as_json=as_json, quiet=quiet)
    if threads is not None:
        torch.set_num_threads(threads)
    readings = reading or ["sample"]
    for number in range(seeds) if seed is None else [seed]:
        for name in data or list(PAPER):
            loaded = load_for_table(name, data_dir)
            recipe = RECIPES[name] if budget is None else within(name, budget)
            for n in levels or [255, 1]:
                cell = Cell(loaded, n, number, out, recipe)
                if not cell.path(suffix=".safetensors").is_file():
                    learn(cell, show)
                for how in readings:
                    show.event("cell", **score_cell(cell, reading=how, on_message=show.line))
    table = table_of(read_cells(out))
    write_atomic(out / "table1.md", table.encode())
    show.line(table)


def learn(cell: Cell, show: Show) -> None:
    """Learn the filters of a cell with its progress shown; a signal stops it after the update at hand, saved."""
    with StopSignals().installed() as signals, show.progress(cell.recipe.epochs) as progress:
        train_cell(cell, callbacks=(signals, progress), on_message=show.line)
        signals.done(f"Stopped and saved. Go on with the same command; the folder is {cell.folder}.")
