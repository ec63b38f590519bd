"""The table of commands. Each is imported when it is called: the list of them, `--help`, needs none."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperGroup
from typer.main import get_command

import harmonium

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("training.demo_command", "Train an RBM on small handwritten digits in half a minute: no files needed."),
    "train": ("training.train_command", "Train a model on data, evaluate it, and write a report."),
    "resume": ("training.resume_command", "Go on with a run that was stopped or killed."),
    "fine-tune": (
        "training.fine_tune_command",
        "Make a classifier of a trained run: the way up as a network, tuned by backpropagation.",
    ),
    "sample": (
        "using.sample_command",
        "Draw samples from a trained model: pictures, an array, or the rows of a table.",
    ),
    "inpaint": (
        "using.inpaint_command",
        "Take values away from test samples and draw them again from the model, given the rest.",
    ),
    "impute": ("tables.impute_command", "Fill in the missing cells of a table, given the others of their rows."),
    "score": (
        "tables.score_command",
        "Score each row of a table: its log-likelihood, how odd it is, and which columns make it so.",
    ),
    "transform": ("tables.transform_command", "Write features of each row of a table: the means of the hidden units."),
    "evaluate": (
        "using.evaluate_command",
        "Score the training, validation and test data: log-likelihoods with bounds, accuracy where there are classes.",
    ),
    "logz": (
        "logz.logz_command",
        "Estimate log Z of a trained model, with guaranteed and statistical bounds, and say whether to trust it.",
    ),
    "report": (
        "using.report_command",
        "Draw the figures of a run, or of an experiment, again and write its report.html.",
    ),
    "compare-objectives": (
        "compare.compare_objectives_command",
        "Compare learning rules: exact likelihood against seconds, on machines small enough to be counted.",
    ),
    "compare": (
        "comparing.compare_command",
        "Compare runs: the settings that differ, likelihoods with paired differences, curves and samples on one page.",
    ),
    "sweep": ("sweeping.sweep_command", "Train a run for every combination of some settings, and compare them all."),
    "list": (
        "listing.list_command",
        "List the runs and experiments in a folder with their scores and the settings that vary.",
    ),
    "serve": (
        "serving.serve_command",
        "Watch the runs of a folder live in a browser, and play with their models.",
    ),
    "info": (
        "using.info_command",
        "Show versions, threads, kinds of models and data sets, with what to put where for those that are missing.",
    ),
    "fetch": ("fetching.fetch_command", "Fetch public data sets by name into the data directory."),
    "reproduce": ("reproduce.group", "Repeat published experiments."),
}
"""Each command: where it is in `harmonium.cli`, and the first line of its help."""


class Commands(TyperGroup):
    """The commands by their names; the one that is called is imported then."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that is called, with its flags."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load_command(name), rest


def load_command(name: str) -> Any:
    """Return a command with its flags; `train` has those of all kinds of models that there are."""
    module, _, attribute = COMMANDS[name][0].partition(".")
    found = getattr(import_module(f"harmonium.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        return get_command(found)
    if name == "train":
        found = import_module("harmonium.cli.flags").with_flags(found)
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    app.command(name, help=flowing(found.__doc__ or ""))(found)
    return get_command(app)


def flowing(text: str) -> str:
    """Return a docstring whose paragraphs are one line each, broken where the terminal ends; brackets are no markup.

    >>> flowing("First line.\\n\\n    More\\n    of it.")
    'First line.\\n\\nMore of it.'
    """
    return escape("\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n")))


def make_app() -> typer.Typer:
    """Return the whole command line."""
    app = typer.Typer(
        name="harmonium",
        cls=Commands,
        help="Train, watch, sample and score Boltzmann machines. Start with: harmonium demo",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )

    @app.callback()
    def everything(
        version: Annotated[
            bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=show_version)
        ] = False,
    ) -> None:
        """Train, watch, sample and score Boltzmann machines. Start with: harmonium demo"""

    for name, (_, text) in COMMANDS.items():
        app.command(name, help=text)(_placeholder)
    return app


def show_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        typer.echo(f"harmonium {harmonium.__version__}")
        raise typer.Exit


def _placeholder() -> None:
    """Stand in a list of commands for the one that is imported when it is called."""
