"""The commands that use a trained run: `sample`, `inpaint`, `evaluate`, `report`; and `info`."""

from __future__ import annotations

import math
import platform
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.table import Table
from torch import Tensor

import harmonium
from harmonium import native
from harmonium.cli.finish import write_report
from harmonium.cli.opening import open_any
from harmonium.cli.options import DataDir, Json, Quiet, RunFolder, UseSeed
from harmonium.cli.show import Show, cell
from harmonium.cli.signals import StopSignals
from harmonium.experiments import Experiment
from harmonium.planes import INTEGERS
from harmonium.products import ONEDNN
from harmonium.runs import (
    KINDS,
    Run,
    draw,
    evaluate,
    inpaint,
    inventory,
    score_samples,
    write_array,
    write_table,
)
from harmonium.runs.folder import MODEL, REPORT

_WIDEST = 16  # images in a row, where a sample is not wider

Steps = Annotated[int, typer.Option("--steps", min=1, help="Steps of each chain.")]


def sample_command(
    run: RunFolder,
    n: Annotated[int, typer.Option("-n", "--rows", min=1, help="How many samples.")] = 64,
    steps: Steps = 1000,
    class_: Annotated[
        int | None, typer.Option("--class", min=0, help="Draw samples of one class.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write: .png, .npy or .csv. Default: samples in the run.", show_default=False
        ),
    ] = None,
    seed: UseSeed = 0,
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Draw samples from a trained model: pictures, an array, or the rows of a table."""
    opened, show = Run.open(run, data_dir=data_dir), Show(as_json=as_json, quiet=quiet)
    path = output or opened.folder / f"samples{suffix(opened)}"
    check_suffix(path, (".png", ".npy", ".csv"))
    with StopSignals().installed(), show.warnings():
        write_samples(opened, draw(opened, n, n_steps=steps, y=class_, seed=seed), path)
    show.event("samples", path=str(path), n=n, steps=steps, **({} if class_ is None else {"class": class_}))
    after = "" if opened.config.model.kind == "table" else f" after {steps} steps"
    show.line(f"{n} samples{'' if class_ is None else f' of class {class_}'}{after}: {path}")


def inpaint_command(
    run: RunFolder,
    missing: Annotated[
        str,
        typer.Option(help="What is taken away: a share such as 0.5, or top, bottom, left, right, half of an image."),
    ] = "half",
    n: Annotated[int, typer.Option("-n", min=1, help="How many test samples.")] = 16,
    steps: Steps = 1000,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write: .png, .npy or .csv. Default: inpainting in the run.",
            show_default=False,
        ),
    ] = None,
    seed: UseSeed = 0,
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take values away from test samples and draw them again from the model, given the rest.

    A picture shows the originals, what was given, and what was filled in; an array or a table has the filled samples.
    """
    opened, show = Run.open(run, data_dir=data_dir), Show(as_json=as_json, quiet=quiet)
    path = output or opened.folder / f"inpainting{suffix(opened)}"
    check_suffix(path, (".png", ".npy", ".csv"))
    with StopSignals().installed(), show.warnings():
        result = inpaint(opened, missing, n=n, n_steps=steps, seed=seed)
        if path.suffix == ".png":
            from harmonium.plots import inpainting

            n_each, shape = images_of(opened)
            original, given, filled = (x.reshape(-1, *shape) for x in (result.original, result.given, result.filled))
            figure = inpainting(original, given, filled, shape, n_columns=n_each * max(1, _WIDEST // n_each))
            figure.savefig(path, bbox_inches="tight", pad_inches=0.06)
        else:
            write_samples(opened, result.filled, path)
    show.event("inpainting", path=str(path), n=len(result.filled), missing=missing, steps=steps)
    show.line(f"{len(result.filled)} samples filled in ({missing} missing): {path}")


def evaluate_command(
    run: RunFolder,
    n_chains: Annotated[int | None, typer.Option(min=2, help="Annealed chains for log Z.")] = None,
    n_betas: Annotated[
        int | None, typer.Option(min=2, help="Temperatures for log Z: more give tighter bounds.")
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(min=20, help="Also draw so many images and score them: Fréchet distance, precision, recall."),
    ] = None,
    steps: Steps = 1000,
    inception: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="Weight file of Inception-v3 to score images with: it is then FID."
        ),
    ] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score the training, validation and test data: log-likelihoods with bounds, accuracy where there are classes.

    What is scored, the kind of model says: a joint model also gets its calibration error and how well it tells outliers
    from data; a deep belief network the share of images that each depth leaves unexplained, and a bound where it is
    binary. log Z is exact where it can be counted, else it lies between a lower and an upper bound. Nats of differently
    prepared data cannot be compared, so the preparation is printed with them.
    """
    if inception is not None and samples is None:
        raise ValueError("--inception scores images that are drawn. Say how many with --samples, such as 2000.")
    opened, show = Run.open(run, data_dir=data_dir), Show(as_json=as_json, quiet=quiet)
    with StopSignals().installed(), show.warnings():
        drawn = {}
        if samples is not None:
            drawn = score_samples(opened, samples, n_steps=steps, inception=inception, say=show.line)
        scores = evaluate(opened, n_chains=n_chains, n_betas=n_betas) | ({"generation": drawn} if drawn else {})
    opened.write_evaluation(scores)
    show.scores(opened, scores)
    for part in ("frechet", "shares") if drawn else ():
        show.line(drawn[part]["text"])


def report_command(run: RunFolder, data_dir: DataDir = None, as_json: Json = False, quiet: Quiet = False) -> None:
    """Draw the figures of a run, or of an experiment, again and write its report.html."""
    opened, show = open_any(run, data_dir), Show(as_json=as_json, quiet=quiet)
    with StopSignals().installed(), show.warnings():
        write_report(opened, show)


def info_command(
    run: Annotated[
        Path | None, typer.Argument(metavar="[RUN]", help="The folder of a run, to be described.", show_default=False)
    ] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Show versions, threads, kinds of models and data sets, with what to put where for those that are missing.

    With the folder of a run: what it learned from, how, how far it is, and how well it does.
    """
    show = Show(as_json=as_json)
    if run is not None:
        describe(open_any(run, data_dir), show)
        return
    versions = {"harmonium": harmonium.__version__, "torch": torch.__version__, "python": platform.python_version()}
    items = inventory(data_dir)
    cuda = torch.cuda.is_available()
    show.event(
        "info",
        **versions,
        threads=torch.get_num_threads(),
        compiled=native.LIBRARY is not None,
        onednn=ONEDNN,
        integers=INTEGERS,
        cuda=cuda,
        data_dir=data_dir,
        models={name: kind.summary for name, kind in KINDS.items()},
        data={item.name: list(item.missing) for item in items},
    )
    show.line(", ".join(f"{name} {version}" for name, version in versions.items()))
    loops = "compiled" if native.LIBRARY else "left to PyTorch (no C compiler at installation)"
    show.line(f"{torch.get_num_threads()} threads, inner loops {loops}, CUDA {'can' if cuda else 'cannot'} be used")
    library, rounded = "oneDNN" if ONEDNN else "PyTorch", "bytes" if INTEGERS else "floats"
    show.line(f"products of layers by {library}, of rounded weights in {rounded}")
    show.line(f"data directory: {data_dir or 'none (choose one with --data-dir or HARMONIUM_DATA)'}")
    kinds = Table("model", "", box=None, pad_edge=False)
    for name, kind in KINDS.items():
        kinds.add_row(cell(name), cell(kind.summary))
    show.table(kinds)
    show.line()
    table = Table("data set", "", box=None, pad_edge=False)
    for item in items:
        state = "embedded" if item.embedded else "found" if not item.missing else f"missing: put {wanted(item.missing)}"
        table.add_row(cell(item.name), cell(state))
    show.table(table)


def describe(opened: Run | Experiment, show: Show) -> None:
    """Print what a run is: its line in the list, its model, its scores, and the folder's files."""
    listed = opened.listed()
    show.event("run", folder=str(opened.folder), **listed._asdict())
    show.line(f"{opened.folder}: {listed.model} on {listed.data}, {listed.n_epochs} of {listed.epochs} epochs")
    if isinstance(opened, Run):
        scores = opened.evaluation()
        show.line(f"kind: {opened.kind.summary}")
        if (opened.folder / MODEL).is_file():
            n = sum(value.numel() for value in opened.parameters("cpu").values())
            show.line(f"size: {listed.size}, {n:,} numbers in {MODEL}")
        for line in [] if scores is None else opened.kind.lines(scores):
            show.line(line)
        if scores is None:
            show.line(f"not evaluated yet: harmonium evaluate {opened.folder}")
    elif listed.score:
        show.line(listed.score)
    report = opened.folder / REPORT
    show.line(f"report: {report}" if report.is_file() else f"no report yet: harmonium report {opened.folder}")


def wanted(missing: tuple[str, ...]) -> str:
    """Return the first missing file and how many more there are."""
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return f"<data-dir>/{missing[0]}{more}"


def suffix(run: Run) -> str:
    """Return the natural kind of file for the samples of a run: a picture, a table or an array."""
    data = run.outline.data
    return ".csv" if data.kind == "table" else ".npy" if run.kind.images(data) is None else ".png"


def check_suffix(path: Path, known: tuple[str, ...]) -> None:
    """Raise unless the file can be written."""
    if path.suffix not in known:
        raise ValueError(f"{path} must end in {', '.join(known)}: that decides what is written.")
    if not path.parent.is_dir():
        raise ValueError(f"There is no folder {path.parent} to write {path.name} into. Make it first.")


def write_samples(run: Run, x: Tensor, path: Path) -> None:
    """Write samples in the format of the file's name."""
    if path.suffix == ".npy":
        write_array(x, path)
    elif path.suffix == ".csv":
        write_table(x, run.outline.data, path)
    else:
        from harmonium.plots import save_grid

        n_each, shape = images_of(run)
        images = x.reshape(-1, *shape)
        n_columns = n_each * max(1, math.isqrt(len(images)) // n_each) if n_each > 1 else None
        save_grid(images, shape, path, n_columns=n_columns)


def images_of(run: Run) -> tuple[int, tuple[int, ...]]:
    """Return how many images a sample of a run is, which stay side by side, and their shape, or raise if it is none."""
    data = run.outline.data
    found = run.kind.images(data)
    if found is None:
        raise ValueError(f"Samples of {data.name} are not images. Write them to a .npy or .csv file.")
    return found
