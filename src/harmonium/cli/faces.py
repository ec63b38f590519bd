"""The command `reproduce faces`: a deep belief network that generates color faces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from harmonium.cli.options import DataDir, Json, Quiet, Threads
from harmonium.cli.show import Show
from harmonium.cli.signals import SignalGuard
from harmonium.runs.atomic import write_atomic
from harmonium.runs.face_pictures import face_pictures
from harmonium.runs.faces import RECIPES, TABLE, FaceRun, draw_all, score_faces, table_of_faces, train_faces


def faces_command(
    size: Annotated[int, typer.Option(help="Side of the images in pixels: 32 or 64.")] = 32,
    data: Annotated[str, typer.Option(help="celeba, or a folder of pictures.")] = "celeba",
    budget: Annotated[
        float | None,
        typer.Option(min=0.1, help="Minutes of training on one free core.", show_default="the recipe's"),
    ] = None,
    samples: Annotated[int, typer.Option(min=40, help="Samples to draw and to score.")] = 2000,
    steps: Annotated[int, typer.Option(min=1, help="Gibbs steps of each chain.")] = 300,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results.", show_default="runs/faces-<size>-<seed>")
    ] = None,
    threads: Threads = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train on faces, draw from the network, and score the samples beside Gaussian noise and principal components.

    Leaves pictures (samples, reconstructions, gray pictures in color, nearest neighbors) and one table. The same
    command goes on after a stop: every stage that is done is kept, and training resumes exactly.
    """
    if size not in RECIPES:
        raise ValueError(f"--size must be one of {', '.join(map(str, RECIPES))}. Got {size}.")
    show = Show(as_json=as_json, quiet=quiet)
    if threads is not None:
        torch.set_num_threads(threads)
    recipe = RECIPES[size] if budget is None else RECIPES[size].within(budget)
    folder = Path("runs") / f"faces-{size}-{seed}" if out is None else out
    run = FaceRun(folder, size, seed, recipe, samples, steps, data)
    run.open()
    images = run.images(data_dir)
    show.line(f"data: {images}")
    with SignalGuard().installed() as guard:
        dbn = train_faces(run, images, callbacks=(guard,), say=show.line)
        guard.done(f"Stopped and saved. Go on with the same command; the folder is {folder}.")
    if dbn is None:
        raise ValueError(f"Training did not reach its last epoch. Go on with the same command; the folder is {folder}.")
    drawn = draw_all(run, dbn, images)
    pictures = face_pictures(run, dbn, images, drawn, data_dir=data_dir)
    from harmonium.plots.faces import write_face_pictures

    for path in write_face_pictures(pictures, folder / "figures"):
        show.event("picture", path=str(path))
    show.line(f"pictures: {folder / 'figures'}")
    records = score_faces(run, images, drawn, say=show.line)
    table = table_of_faces(run, records)
    write_atomic(folder / TABLE, table.encode())
    show.event("scores", folder=str(folder), **records)
    show.line(table)
