"""The command `reproduce faces`: a deep belief network that generates color faces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

from harmonium.cli.options import DataDir, Json, Quiet, Threads
from harmonium.cli.show import Show
from harmonium.cli.signals import StopSignals
from harmonium.evaluation.images.inception import inception as inception_of
from harmonium.experiments.faces.folder import TABLE, FaceRun
from harmonium.experiments.faces.pictures import face_pictures
from harmonium.experiments.faces.recipe import DENSE, RECIPES
from harmonium.experiments.faces.scores import draw_all, score_faces, suffix, table_of_faces
from harmonium.experiments.faces.training import train_faces
from harmonium.runs.atomic import write_atomic


def faces_command(
    size: Annotated[int, typer.Option(help="Side of the images in pixels: 32 or 64.")] = 32,
    data: Annotated[str, typer.Option(help="celeba, or a folder of pictures.")] = "celeba",
    network: Annotated[
        str, typer.Option(help="Where the codes are read: dense, from pixels; conv, from a convolution of 255 levels.")
    ] = DENSE,
    budget: Annotated[
        float | None,
        typer.Option(min=0.1, help="Minutes of training on one free core.", show_default="the recipe's"),
    ] = None,
    samples: Annotated[int, typer.Option(min=40, help="Samples to draw and to score.")] = 2000,
    steps: Annotated[int, typer.Option(min=1, help="Gibbs steps of each chain.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results.", show_default="runs/faces-<network>-<size>-<seed>")
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

    Leaves pictures (samples, reconstructions, gray pictures in color, nearest neighbors) and one table. The same
    command goes on after a stop: every stage that is done is kept, and training resumes exactly.
    """
    if network not in RECIPES:
        raise ValueError(f"--network must be one of {', '.join(RECIPES)}. Got {network}.")
    recipes = RECIPES[network]
    if size not in recipes:
        raise ValueError(f"--size must be one of {', '.join(map(str, recipes))}. Got {size}.")
    features = None if inception is None else inception_of(inception)
    show = Show(as_json=as_json, quiet=quiet)
    if threads is not None:
        torch.set_num_threads(threads)
    recipe = recipes[size] if budget is None else recipes[size].within(budget)
    folder = Path("runs") / f"faces-{network}-{size}-{seed}" if out is None else out
    run = FaceRun(folder, size, seed, recipe, samples, steps, data)
    run.open()
    images = run.images(data_dir)
    show.line(f"data: {images}")
    with StopSignals().installed() as signals:
        dbn = train_faces(run, images, callbacks=(signals,), say=show.line)
        signals.done(f"Stopped and saved. Go on with the same command; the folder is {folder}.")
    if dbn is None:
        raise ValueError(f"Training did not reach its last epoch. Go on with the same command; the folder is {folder}.")
    drawn = draw_all(run, dbn, images)
    pictures = face_pictures(run, dbn, images, drawn, data_dir=data_dir)
    from harmonium.plots.faces import frechet_curve, write_face_pictures

    for path in write_face_pictures(pictures.samples, pictures.groups(), folder / "figures"):
        show.event("picture", path=str(path))
    show.line(f"pictures: {folder / 'figures'}")
    records = score_faces(run, dbn, images, drawn, network=features, say=show.line)
    frechet_curve(records).savefig(folder / "figures" / f"curve{suffix(features)}.png")
    table = table_of_faces(run, records)
    write_atomic((folder / TABLE).with_stem(f"table{suffix(features)}"), table.encode())
    show.event("scores", folder=str(folder), **records)
    show.line(table)
