"""The commands that train: `train`, `resume`, `fine-tune`, `demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from torch import Tensor

from harmonium import workers
from harmonium.cli.finish import finish, finish_experiment
from harmonium.cli.flags import flag_settings
from harmonium.cli.opening import open_any
from harmonium.cli.options import (
    DataDir,
    Json,
    Output,
    Overwrite,
    Quiet,
    RunFolder,
    Seed,
    Threads,
    Watch,
    as_settings,
    parse_assignments,
)
from harmonium.cli.show import Show
from harmonium.cli.watching import Watching
from harmonium.runs import KINDS, Config, Run, draw_means, fine_tune, next_folder, prepare, resolve, settled
from harmonium.runs.build import build_training
from harmonium.runs.config import chosen, default_kind, merge, read_toml
from harmonium.runs.folder import CONFIG
from harmonium.runs.run import last_folder

RUNS = Path("runs")

DEMO: dict[str, Any] = {"data": {"name": "digits", "binarize": "threshold"}, "model": {"kind": "rbm"}}


def train_command(
    config: Annotated[
        Path | None,
        typer.Argument(metavar="[CONFIG]", help="A TOML file with settings; flags win over it.", show_default=False),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Any other setting, such as data.options.noise=0.05. May be repeated.",
            rich_help_panel="Running",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder of the run. Default: runs/<data>-<model>-<n>.",
            rich_help_panel="Running",
            show_default=False,
        ),
    ] = None,
    overwrite: Overwrite = False,
    show_config: Annotated[
        bool,
        typer.Option("--show-config", help="Print every setting, not only those that differ from the recipe."),
    ] = False,
    watch: Watch = False,
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
    **flags: Any,
) -> None:
    """Train a model on data, evaluate it, and write a report.

    Settings come from a TOML file, from flags, or from both; what is left out comes from a recipe for the data and the
    model. The run is a folder from which it can be resumed exactly, sampled and evaluated.

    Try one of these:

      harmonium train --data moons --model gaussian-rbm

      harmonium train --data mnist --binarize sample --n-hidden 500 --epochs 10

      harmonium train --data digits --model jem

      harmonium train --data mnist --model dbn

      harmonium train --data table.csv --columns id=skip

      harmonium train my-run.toml --seed 1 --output runs/second
    """
    settings = {} if config is None else read_toml(config)
    assigned = as_settings({"data.data_dir": data_dir, **parse_assignments(assignments or [])})
    laid = merge(settings, assigned)
    data = str(flags["data"] or chosen(laid, "data", "name") or "")
    kind = flags["model"] or chosen(laid, "model", "kind") or default_kind(data)
    given = merge(flag_settings(flags, str(kind)), assigned)
    show = Show(as_json=as_json, quiet=quiet)
    with workers.joined(), Watching(watch, show, data_dir) as page:
        start(resolve(settings, given), output, overwrite, show, page, show_config)


def resume_command(
    run: RunFolder,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Go on to this epoch, also where the run was made for fewer.", show_default=False),
    ] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a run that was stopped or killed.

    It ends exactly, bit for bit, as if it had never been interrupted. A run that is finished is only evaluated again,
    unless --epochs says that it goes on: at a constant rate it then ends as if it had been made for so many; a schedule
    begins anew over the epochs that are added. The folder of an experiment goes on as well.
    """
    with workers.joined():
        _resume(run, epochs, data_dir, Show(as_json=as_json, quiet=quiet))


def _resume(run: Path, epochs: int | None, data_dir: str | None, show: Show) -> None:
    opened = open_any(run, data_dir)
    if isinstance(opened, Run):
        workers.require_same(configuration=opened.config.to_toml())  # and nobody changes it before all have read it
        if epochs is not None:
            opened.extend(epochs)
        finish(opened, show)
    elif workers.world() > 1:
        raise ValueError(f"{run} holds an experiment, which one process does. Resume it without torchrun.")
    elif epochs is not None:
        raise ValueError(f"{run} holds an experiment, whose epochs its recipe says. Leave --epochs out.")
    else:
        finish_experiment(opened, show)


def fine_tune_command(
    run: RunFolder,
    labels: Annotated[
        int | None, typer.Option(min=0, help="How many labels are known; 0: all.", show_default=False)
    ] = None,
    data: Annotated[
        str | None, typer.Option(help="Other data to learn from. Default: those of the run.", show_default=False)
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=0, help="Passes over the data.", show_default=False)] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", help="Any other setting, such as network.dropout=0.5. May be repeated."),
    ] = None,
    seed: Seed = None,
    threads: Threads = None,
    output: Output = None,
    overwrite: Overwrite = False,
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a classifier of a trained run: the way up as a network, tuned by backpropagation.

    The run is an rbm, a class-rbm, a dense dbn or a dbm. What comes out is a run of its own, a network.

      harmonium fine-tune runs/mnist-rbm-1 --labels 1000
    """
    flags = {"data.name": data, "network.labels": labels, "training.epochs": epochs, "run.seed": seed}
    flags |= {"run.threads": threads, "data.data_dir": data_dir}
    given = as_settings({**flags, **parse_assignments(assignments or [])})
    opened, show = Run.open(run), Show(as_json=as_json, quiet=quiet)
    made = fine_tune(opened, given, folder=output, root=RUNS, overwrite=overwrite)
    show.config(made.folder, made.config)
    finish(made, show)


def demo_command(
    output: Output = None,
    overwrite: Overwrite = False,
    seed: Seed = None,
    threads: Threads = None,
    watch: Watch = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train an RBM on small handwritten digits in half a minute: no files needed.

    Prints digits that it has made up and the log-likelihood of the test digits with its bounds, and leaves a run with
    digits.png and report.html: curves, filters, samples, reconstructions.
    """
    flags, show = as_settings({"run.seed": seed, "run.threads": threads}), Show(as_json=as_json, quiet=quiet)
    with Watching(watch, show) as page:
        run = start(resolve(merge(DEMO, flags)), output, overwrite, show, page)
        show_digits(run, show)


def show_digits(run: Run, show: Show) -> None:
    """Print digits that a run makes up, and write more of them."""
    digits = draw_means(run, 40)
    show.line("digits that it makes up (means of the pixels at the ends of Gibbs chains):")
    for line in shaded(digits[:8, 0], 4):
        show.line(line)
    try:
        from harmonium.plots import save_grid  # optional: it needs matplotlib
    except ImportError:
        return
    save_grid(digits, run.data().shape, run.folder / "digits.png", n_columns=10)
    show.line(f"more of them: {run.folder / 'digits.png'}")


def shaded(images: Tensor, n_columns: int) -> list[str]:
    """Return images in [0, 1], `(n, height, width)`, as lines of text, two characters a pixel.

    >>> shaded(torch.tensor([[[0.0, 1.0]], [[0.5, 0.0]]]), 2)
    ['  ██  ▒▒  ']
    """
    shades = " ░▒▓█"
    lines = []
    for row in images.split(n_columns):
        for y in range(row.shape[1]):
            levels = (row[:, y].clamp(0, 1) * (len(shades) - 1)).round().long()
            lines.append("  ".join("".join(2 * shades[i] for i in line) for line in levels.tolist()))
        lines.append("")
    return lines[:-1] if len(images) <= n_columns else lines


def start(config: Config, output: Path | None, overwrite: bool, show: Show, page: Watching, whole: bool = False) -> Run:
    """Make the run of a configuration and train it, watched on a page if that is wanted."""
    folder = next_folder(RUNS, config) if output is None else output
    folder = Path(workers.from_first(str(folder)))
    config = settled(config)
    workers.require_same(configuration=config.to_toml())
    prepared = prepare(config)
    if prepared.data.kind == "table":
        show.columns(prepared.data.columns)
    config = KINDS[config.model.kind].choose(config, prepared, show.line)
    begun = _begun(config, output)
    if begun is not None:
        begun.prepared = prepared
        finish(begun, show)
        return begun
    show.config(folder, config, whole=whole)
    build_training(config, prepared)  # what is wrong with data or settings is said before a folder is made
    workers.done_by_first(lambda: Run.create(folder, config, overwrite=overwrite))
    run = Run(folder, settled(config))
    run.prepared = prepared
    if workers.is_first():
        page.open(run.folder)
    finish(run, show)
    return run


def _begun(config: Config, output: Path | None) -> Run | None:
    """Return the run of this configuration that workers began before `torchrun` started them again, if there is one.

    Agents of several hosts count restarts each for itself: one that counts speaks for all.
    """
    last = last_folder(RUNS, config) if output is None else output
    is_first_attempt = workers.agreed(not workers.n_restarts())
    is_there = workers.agreed(last is not None and (last / CONFIG).is_file())
    if is_first_attempt or not is_there or last is None:
        return None
    run = Run.open(last)
    return run if run.config == config else None
