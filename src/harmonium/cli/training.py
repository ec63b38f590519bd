"""The commands that train: `train`, `resume`, `demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from harmonium.cli.options import (
    DataDir,
    Device,
    Json,
    Output,
    Overwrite,
    Quiet,
    RunFolder,
    Seed,
    Threads,
    as_settings,
    parse_assignments,
)
from harmonium.cli.show import Show, print_scores
from harmonium.cli.signals import SignalGuard
from harmonium.runs import Config, Run, evaluate, next_folder, prepare, settled, train
from harmonium.runs.config import merge, read_toml

RUNS = Path("runs")

DEMO: dict[str, Any] = {"data": {"name": "digits", "binarize": "threshold"}, "model": {"kind": "rbm"}}


def option(text: str, panel: str, *names: str, **rest: Any) -> Any:
    """Return a flag of `train` that overrides the configuration, under a heading of the help."""
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=False, **rest)


MODEL, LEARNING, RUNNING = "Data and model", "Learning", "Running"
JOINT, DEEP = "Joint energy models", "Deep belief networks"


def train_command(
    config: Annotated[
        Path | None,
        typer.Argument(metavar="[CONFIG]", help="A TOML file with settings; flags win over it.", show_default=False),
    ] = None,
    data: Annotated[str | None, option("A known data set (see `harmonium info`) or a path.", MODEL)] = None,
    model: Annotated[
        str | None,
        option(
            "rbm (visible units follow the data), gaussian-rbm, jem (joint energy) or dbn (deep belief network).", MODEL
        ),
    ] = None,
    binarize: Annotated[
        str | None, option("How gray values become 0 and 1: threshold, sample, resample, or scale.", MODEL)
    ] = None,
    standardize: Annotated[
        bool | None, option("Standardize real values.", MODEL, "--standardize/--no-standardize")
    ] = None,
    n_hidden: Annotated[int | None, option("Number of hidden units.", MODEL, "--n-hidden")] = None,
    hidden: Annotated[
        str | None, option("Hidden units: bernoulli, spin, nrelu, gaussian, binomial, categorical.", MODEL)
    ] = None,
    epochs: Annotated[int | None, option("Passes over the data.", LEARNING)] = None,
    batch_size: Annotated[int | None, option("Samples in an update.", LEARNING)] = None,
    objective: Annotated[str | None, option("cd, pcd or tempered-pcd.", LEARNING)] = None,
    n_steps: Annotated[int | None, option("Steps of the chains in an update.", LEARNING)] = None,
    n_chains: Annotated[int | None, option("Persistent chains.", LEARNING)] = None,
    optimizer: Annotated[str | None, option("sgd or adam.", LEARNING)] = None,
    learning_rate: Annotated[float | None, option("Learning rate at the start.", LEARNING)] = None,
    schedule: Annotated[str | None, option("constant, linear or cosine.", LEARNING)] = None,
    final_learning_rate: Annotated[float | None, option("Learning rate at the end of a schedule.", LEARNING)] = None,
    momentum: Annotated[float | None, option("Momentum of sgd.", LEARNING)] = None,
    weight_decay: Annotated[float | None, option("Decay of the weights.", LEARNING)] = None,
    centering: Annotated[bool | None, option("Center the gradient.", LEARNING, "--centering/--no-centering")] = None,
    clip: Annotated[float | None, option("Largest norm of the gradient.", LEARNING)] = None,
    average: Annotated[
        float | None, option("Memory of the parameter average, such as 0.999; 0 is off.", LEARNING)
    ] = None,
    network: Annotated[str | None, option("mlp, small-conv or small-residual.", JOINT)] = None,
    step_size: Annotated[float | None, option("Step size of Langevin steps.", JOINT, "--step-size")] = None,
    noise: Annotated[float | None, option("Noise of Langevin steps.", JOINT)] = None,
    buffer: Annotated[
        bool | None, option("Keep chains in a buffer, or start them at each update.", JOINT, "--buffer/--no-buffer")
    ] = None,
    generation_weight: Annotated[float | None, option("Weight of L_gen.", JOINT, "--generation-weight")] = None,
    input_noise: Annotated[float | None, option("Noise added to the data.", JOINT, "--input-noise")] = None,
    labels: Annotated[int | None, option("How many labels are known, as many of each class; 0: all.", JOINT)] = None,
    baseline: Annotated[
        bool | None, option("Train the network as a plain classifier.", JOINT, "--baseline/--no-baseline")
    ] = None,
    spec: Annotated[
        str | None, option('Layers, such as "conv 16 4x4/2, dense 200, dense 500". Default: by image size.', DEEP)
    ] = None,
    levels: Annotated[
        int | None, option("Levels 0..N of the units, such as 255 or 1. Default: as the data have.", DEEP)
    ] = None,
    order: Annotated[str | None, option("Which layers learn when: top-last, joint or greedy.", DEEP)] = None,
    assignments: Annotated[
        list[str] | None,
        option("Any other setting, such as data.options.noise=0.05. May be repeated.", RUNNING, "--set"),
    ] = None,
    output: Annotated[
        Path | None, option("Folder of the run. Default: runs/<data>-<model>-<n>.", RUNNING, "--output", "-o")
    ] = None,
    overwrite: Overwrite = False,
    report: Annotated[bool | None, option("Write report.html at the end.", RUNNING, "--report/--no-report")] = None,
    score: Annotated[bool | None, option("Evaluate at the end.", RUNNING, "--evaluate/--no-evaluate")] = None,
    seed: Seed = None,
    device: Device = None,
    threads: Threads = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a model on data, evaluate it, and write a report.

    Settings come from a TOML file, from flags, or from both; what is left out comes from a recipe for the data and the
    model. The run is a folder from which it can be resumed exactly, sampled and evaluated.

    Try one of these:

      harmonium train --data moons --model gaussian-rbm

      harmonium train --data mnist --binarize sample --n-hidden 500 --epochs 10

      harmonium train --data digits --model jem

      harmonium train --data mnist --model dbn

      harmonium train my-run.toml --seed 1 --output runs/second
    """
    flags = {
        "data.name": data,
        "data.binarize": binarize,
        "data.standardize": standardize,
        "data.data_dir": data_dir,
        "model.kind": model,
        "model.n_hidden": n_hidden,
        "model.hidden": hidden,
        "training.epochs": epochs,
        "training.batch_size": batch_size,
        "training.objective": objective,
        "training.n_steps": n_steps,
        "training.n_chains": n_chains,
        "training.optimizer": optimizer,
        "training.learning_rate": learning_rate,
        "training.schedule": schedule,
        "training.final_learning_rate": final_learning_rate,
        "training.momentum": momentum,
        "training.weight_decay": weight_decay,
        "training.centering": centering,
        "training.clip": clip,
        "training.average": average,
        "joint.network": network,
        "joint.step_size": step_size,
        "joint.noise": noise,
        "joint.buffer": buffer,
        "joint.generation_weight": generation_weight,
        "joint.input_noise": input_noise,
        "joint.labels": labels,
        "joint.baseline": baseline,
        "deep.spec": spec,
        "deep.levels": levels,
        "deep.order": order,
        "run.seed": seed,
        "run.device": device,
        "run.threads": threads,
        "run.report": report,
        "run.evaluate": score,
        **parse_assignments(assignments or []),
    }
    settings = {} if config is None else read_toml(config)
    start(Config.resolve(settings, as_settings(flags)), output, overwrite, Show(as_json=as_json, quiet=quiet))


def resume_command(run: RunFolder, as_json: Json = False, quiet: Quiet = False) -> None:
    """Go on with a run that was stopped or killed.

    It ends exactly, bit for bit, as if it had never been interrupted. A run that is finished is only evaluated again.
    """
    finish(Run.open(run), Show(as_json=as_json, quiet=quiet))


def demo_command(
    output: Output = None,
    overwrite: Overwrite = False,
    seed: Seed = None,
    threads: Threads = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train an RBM on small handwritten digits in half a minute: no files needed.

    Prints the log-likelihood of the test digits with its bounds and leaves a run with report.html: curves, filters,
    samples, reconstructions.
    """
    flags = as_settings({"run.seed": seed, "run.threads": threads})
    start(Config.resolve(merge(DEMO, flags)), output, overwrite, Show(as_json=as_json, quiet=quiet))


def start(config: Config, output: Path | None, overwrite: bool, show: Show) -> None:
    """Make the run of a configuration and train it."""
    check_device(config.run.device)
    folder = next_folder(RUNS, config) if output is None else output
    config = settled(config)
    show.config(folder, config)
    prepared = prepare(config)  # what is wrong with the data is said before a folder is made
    run = Run.create(folder, config, overwrite=overwrite)
    run.prepared = prepared
    finish(run, show)


def finish(run: Run, show: Show) -> None:
    """Train a run to its end, then evaluate it and write its report."""
    check_device(run.config.run.device)
    with SignalGuard().installed() as guard, show.warnings():
        show.line(f"data: {run.data()}")
        with show.progress(run.config.training.epochs) as callback:
            training = train(run, callbacks=[guard, callback], on_message=show.warn)
        guard.done(f"Stopped and saved after update {training.update}. Go on with: harmonium resume {run.folder}")
        show.event("trained", folder=str(run.folder), epochs=training.epoch, seconds=training.seconds)
        show.line(f"trained {training.epoch} epochs, {training.update:,} updates in {training.seconds:.1f} s")
        if run.config.run.evaluate:
            show.line("evaluating …")
            scores = evaluate(run)
            run.write_evaluation(scores)
            print_scores(show, run, scores)
            print_depths(show, scores)
        if run.config.run.report:
            write_report(run, show)
    show.event("done", folder=str(run.folder))
    show.line(f"run: {run.folder}")


def print_depths(show: Show, scores: dict[str, Any]) -> None:
    """Print what reconstructions from each depth of a deep belief network leave unexplained."""
    for split, score in scores.get("unexplained", {}).items():
        shares = ", ".join(f"{share:.2%}" for share in score["value"])
        show.line(f"{split:>5} unexplained share from depth 1, 2, …  {shares} of {score['n']:,} images")
    if "unexplained" in scores:
        show.line("      Σ(v - v′)² / Σ(v - v̄)²: 0 % is perfect, 100 % is no better than the mean training image")


def write_report(run: Run, show: Show) -> None:
    """Write the pictures and the report, if what draws them is installed."""
    try:
        from harmonium.plots import write_report as write
    except ImportError as error:
        show.warn(f'No report is written: {error}. Install what it needs with: pip install "harmonium[plots]"')
        return
    path = write(run)
    show.event("report", path=str(path))
    show.line(f"report: {path}")


def check_device(name: str) -> None:
    """Raise unless the device can be used here."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"There is no device {name!r}. Use cpu or cuda.") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("No CUDA device can be used here. Use --device cpu.")
