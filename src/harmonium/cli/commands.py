"""The table of commands."""

from __future__ import annotations

from collections.abc import Callable

import typer

from harmonium.cli import reproduce, training, using
from harmonium.cli.flags import with_flags

COMMANDS: dict[str, Callable[..., None]] = {
    "demo": training.demo_command,
    "train": training.train_command,
    "resume": training.resume_command,
    "sample": using.sample_command,
    "inpaint": using.inpaint_command,
    "evaluate": using.evaluate_command,
    "report": using.report_command,
    "list": using.list_command,
    "info": using.info_command,
}


def make_app() -> typer.Typer:
    """Return the whole command line, with the flags of the kinds of models that there are."""
    app = typer.Typer(
        name="harmonium",
        help="Train, watch, sample and score Boltzmann machines. Start with: harmonium demo",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )
    for name, command in COMMANDS.items():
        app.command(name)(with_flags(command) if name == "train" else command)
    app.add_typer(reproduce.group)
    return app
