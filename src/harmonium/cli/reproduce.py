"""The commands that repeat published experiments: `reproduce table1` and `reproduce faces`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from harmonium.cli.finish import train_experiment, write_report
from harmonium.cli.options import DataDir, Json, Quiet, Threads
from harmonium.cli.show import Show
from harmonium.cli.table1_stacks import StackOptions, reproduce_stacks
from harmonium.evaluation.images.inception import inception as inception_of
from harmonium.experiments import Faces
from harmonium.experiments.faces.recipe import DENSE
from harmonium.experiments.faces.recipe import RECIPES as FACES
from harmonium.experiments.faces.scores import suffix, table_of_faces
from harmonium.experiments.table1.cell import PAPER, cell_of, read_cells, table_of
from harmonium.runs.atomic import write_atomic
from harmonium.units.activation import ACTIVATIONS

group = typer.Typer(name="reproduce", help="Repeat published experiments.", no_args_is_help=True)


@group.command("faces")
def faces_command(
    size: Annotated[int, typer.Option(help="Side of the images in pixels: 32 or 64; 128 with --network paper.")] = 32,
    data: Annotated[str, typer.Option(help="celeba, or a folder of pictures.")] = "celeba",
    network: Annotated[
        str,
        typer.Option(
            help="Where the codes are read: dense, from pixels; conv, from a convolution of 255 levels; paper, from "
            "the stack of Hwang et al. 2020."
        ),
    ] = DENSE,
    levels: Annotated[
        int | None, typer.Option(min=1, help="Levels 0..N of the layers of conv and paper.", show_default="255")
    ] = None,
    k: Annotated[
        float | None, typer.Option(min=0.0, help="Steepness of their units.", show_default="min(1, 4/N)")
    ] = None,
    activation: Annotated[
        str | None,
        typer.Option(help=f"What they follow: {', '.join(ACTIVATIONS)}.", show_default="the recipe's"),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(min=0.0, help="Learning rate of the layers.", show_default="the recipe's")
    ] = None,
    tuning: Annotated[
        bool | None,
        typer.Option(
            "--tuning/--no-tuning",
            help="paper: learn as a whole from what the code gives back, or each machine from its own loss alone.",
            show_default="tuning",
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(min=0.1, help="Minutes of training on one free core.", show_default="the recipe's"),
    ] = None,
    samples: Annotated[int, typer.Option(min=40, help="Samples to draw and to score.")] = 2000,
    steps: Annotated[int, typer.Option(min=1, help="Gibbs steps of each chain.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder of the results.", show_default="runs/faces-<network>-<size>-<seed>"
        ),
    ] = None,
    inception: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="Weight file of Inception-v3 to score with, instead of EfficientNet-Lite0: FID.",
        ),
    ] = None,
    threads: Threads = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train on faces, draw from the network, and score the samples beside Gaussian noise and principal components.

    Leaves a run with a report (samples, reconstructions, gray pictures in color, nearest neighbors) and one table. The
    same command goes on after a stop: every stage that is done is kept, and training resumes exactly.
    """
    if network not in FACES:
        raise ValueError(f"--network must be one of {', '.join(FACES)}. Got {network}.")
    if size not in FACES[network]:
        raise ValueError(f"--size must be one of {', '.join(map(str, FACES[network]))}. Got {size}.")
    features = None if inception is None else inception_of(inception)
    show = Show(as_json=as_json, quiet=quiet)
    if threads is not None:
        torch.set_num_threads(threads)
    recipe = FACES[network][size] if budget is None else FACES[network][size].within(budget)
    recipe = recipe.adapted(levels=levels, k=k, activation=activation, rate=rate, tuning=tuning)
    run = Faces(
        folder=Path("runs") / f"faces-{network}-{size}-{seed}" if output is None else output,
        recipe=recipe,
        data_name=data,
        seed=seed,
        data_dir=data_dir,
        size=size,
        n_samples=samples,
        n_steps=steps,
    )
    run.begin()
    show.line(f"data: {run.data}")
    train_experiment(run, show)
    records = run.score(network=features, say=show.line)
    table = table_of_faces(run, records)
    write_atomic(run.folder / f"table{suffix(features)}.md", table.encode())
    show.event("scores", folder=str(run.folder), **records)
    write_report(run, show)
    show.line(table)


@group.command("table1")
def table1_command(
    network: Annotated[
        str,
        typer.Option(help="patches, one layer of filters; paper, a stack with pooling, beside its controls."),
    ] = "patches",
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="mnist, fashion-mnist or cifar10, or (paper) a folder with a folder a class; may be repeated.",
            show_default="all",
        ),
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
            help="How hidden units are read: sample (their states), mean, mode; may be repeated.",
            show_default="sample; paper: mean",
        ),
    ] = None,
    layers: Annotated[
        list[str] | None,
        typer.Option(help="paper: layers that are read, 1, 2 or 1+2; may be repeated.", show_default="all three"),
    ] = None,
    controls: Annotated[
        bool,
        typer.Option(
            help="paper: also patches (the untrained stack), k-means, principal components and random filters."
        ),
    ] = True,
    k: Annotated[
        float | None, typer.Option(min=1e-6, help="paper: steepness k of the activity N g(kθ).", show_default="1/N")
    ] = None,
    activation: Annotated[str, typer.Option(help=f"paper: the curve g: {', '.join(ACTIVATIONS)}.")] = "relu",
    rate: Annotated[
        float | None, typer.Option(min=0.0, help="paper: learning rate.", show_default="the recipe's")
    ] = None,
    images: Annotated[int, typer.Option(min=0, help="paper: training images, the first so many; 0: all.")] = 0,
    size: Annotated[int, typer.Option(min=8, help="paper: side of the pictures of a folder.")] = 64,
    per_class: Annotated[
        int, typer.Option(min=2, help="paper: pictures of each class of a folder to learn from.")
    ] = 30,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder of the results; finished cells in it are kept.",
            show_default="runs/table1, paper: runs/table1-paper",
        ),
    ] = None,
    threads: Threads = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Test errors of a support vector machine on features of N-level units (table 1 of Hwang et al. 2020).

    Each cell (data, levels, seed; for the paper's network also where its filters come from) is a run in the folder. The
    same command goes on after a stop, also within the training of the filters.
    """
    if network not in ("patches", "paper"):
        raise ValueError(f"--network must be patches or paper. Got {network}.")
    show = Show(as_json=as_json, quiet=quiet)
    if threads is not None:
        torch.set_num_threads(threads)
    numbers = list(range(seeds)) if seed is None else [seed]
    if network == "paper":
        if budget is not None:
            raise ValueError("--budget is for --network patches. Use fewer --images for less time.")
        options = StackOptions(
            data, levels, numbers, reading, layers, controls, k, activation, rate, images, size, per_class, data_dir
        )
        reproduce_stacks(options, output or Path("runs/table1-paper"), show)
        return
    output = output or Path("runs/table1")
    for number in numbers:
        for name in data or list(PAPER):
            loaded = None
            for n in levels or [255, 1]:
                cell = cell_of(name, n, number, output, budget, data_dir)
                loaded = cell.data = cell.data if loaded is None else loaded  # read once for all numbers of levels
                train_experiment(cell, show)
                before = cell.evaluation()
                for how in reading or ["sample"]:
                    show.event("cell", **cell.score(reading=how, say=show.line))
                if cell.evaluation() != before:
                    write_report(cell, show)
    table = table_of(read_cells(output))
    write_atomic(output / "table1.md", table.encode())
    show.line(table)
