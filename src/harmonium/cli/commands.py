"""The table of commands."""

from __future__ import annotations

import typer

from harmonium.cli import training, using

app = typer.Typer(
    name="harmonium",
    help="Train, watch, sample and score Boltzmann machines. Start with: harmonium demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

for name, command in {
    "demo": training.demo_command,
    "train": training.train_command,
    "resume": training.resume_command,
    "sample": using.sample_command,
    "inpaint": using.inpaint_command,
    "evaluate": using.evaluate_command,
    "report": using.report_command,
    "list": using.list_command,
    "info": using.info_command,
}.items():
    app.command(name)(command)
