"""The command that compares learning rules: `compare-objectives`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from harmonium.cli.options import Json, Quiet
from harmonium.cli.show import Show
from harmonium.experiments.comparison.comparison import TABLE, Comparison
from harmonium.plots.objectives import objective_curves

PICTURE = "comparison.png"


def compare_objectives_command(
    objective: Annotated[
        list[str] | None,
        typer.Option(help="A learning rule, such as pcd; may be repeated.", show_default="all that apply"),
    ] = None,
    visible: Annotated[str, typer.Option(help="Visible units: bernoulli or gaussian.")] = "bernoulli",
    n_visible: Annotated[int, typer.Option(min=1, help="Visible units of the machines.")] = 20,
    n_hidden: Annotated[int, typer.Option(min=1, max=16, help="Hidden units of the machines.")] = 10,
    strength: Annotated[
        list[float] | None,
        typer.Option(
            help="Standard deviation of the weights to be learned; may be repeated.", show_default="0.5, 1, 2"
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Machines of each strength, each with data of its own.")] = 5,
    seconds: Annotated[float, typer.Option(min=0.01, help="Processor time of each run.")] = 1.0,
    rate: Annotated[
        list[float] | None,
        typer.Option(help="A learning rate to choose from; may be repeated.", show_default="0.01, 0.03, 0.1, 0.3"),
    ] = None,
    rows: Annotated[int, typer.Option(min=2, help="Rows of training, of validation and of test data.")] = 2000,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the results.")] = Path(
        "runs/compare-objectives"
    ),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare learning rules: exact likelihood against seconds, on machines small enough to be counted.

    Data are drawn exactly from random machines. For each rule and strength the learning rate with the best exact
    likelihood of validation data is taken, found on a machine of its own; then each rule learns several machines, every
    run for the same processor time on one thread. Leaves comparison.png, table.md, comparison.json and all curves. The
    same command goes on after a stop; a folder with other settings is refused.
    """
    show = Show(as_json=as_json, quiet=quiet)
    comparison = Comparison(
        visible=visible,
        n_visible=n_visible,
        n_hidden=n_hidden,
        strengths=tuple(strength or Comparison.strengths),
        seeds=seeds,
        seconds=seconds,
        rates=tuple(rate or Comparison.rates),
        n_rows=rows,
        rules=tuple(objective or ()),
    )
    torch.set_num_threads(1)  # small products are faster so, and one processor's time is what is compared
    minutes = comparison.n_races * seconds / 60
    show.line(f"{comparison.n_races} runs of {seconds:g} s: {minutes:.0f} min of learning on one core")
    summary = comparison.run(output, say=show.line)
    objective_curves(summary).savefig(output / PICTURE)
    show.event("comparison", folder=str(output), **summary)
    show.line((output / TABLE).read_text(encoding="utf-8"))
    show.line(f"nats below the truth after {seconds:g} s, mean ± standard deviation of {seeds} machines")
    show.line(f"{output / PICTURE}")
