"""The entry point: runs a command and turns what goes wrong into one message and an exit code."""

from __future__ import annotations

import io
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence

import typer

from harmonium.cli.commands import make_app
from harmonium.cli.printable import printable
from harmonium.cli.stopped import Stopped

USER_ERROR, DIVERGED, FAILED = 2, 1, 1


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 when done, 2 for a user's error, 130 or 143 when stopped, 1 for anything else.

    With HARMONIUM_DEBUG set, errors keep their tracebacks.
    """
    for stream in (sys.stdout, sys.stderr):  # a letter that the terminal does not know is no reason to fail
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; what nobody foresaw is one line, with the traceback in a file."""
    try:
        return run_foreseen(arguments)
    except Exception as error:
        if os.environ.get("HARMONIUM_DEBUG"):
            raise
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
            complain("There is not enough memory for this. Use fewer hidden units, chains or rows, or smaller batches.")
            return FAILED
        with tempfile.NamedTemporaryFile(
            "w", prefix="harmonium-", suffix=".txt", delete=False, encoding="utf-8"
        ) as file:
            traceback.print_exception(error, file=file)
        first = (str(error).splitlines() or [""])[0][:200]
        complain(f"Something went wrong that should not: {type(error).__name__}: {first}. Please report {file.name}.")
        return FAILED


def run_foreseen(arguments: Sequence[str] | None) -> int:
    """Run the command line and return the exit code, with a message for each error that a user can mend."""
    try:
        code = make_app()(
            args=None if arguments is None else list(arguments), prog_name="harmonium", standalone_mode=False
        )
        return code if isinstance(code, int) else 0
    except Stopped as stop:
        complain(str(stop))
        return 128 + stop.signum
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  (nobody listens any more)
        return 0
    except ArithmeticError as error:
        from harmonium.learning import TrainingDiverged  # here, since `--help` does without it

        if not isinstance(error, TrainingDiverged):
            raise
        complain(f"Training diverged. {error}")
        return DIVERGED
    except RuntimeError as error:
        from harmonium.workers import WorkersApartError

        if not isinstance(error, WorkersApartError):
            raise
        complain(str(error))
        return FAILED
    except typer.TyperException as error:
        return usage_error(error)
    except (ValueError, OSError, ImportError) as error:
        if os.environ.get("HARMONIUM_DEBUG"):
            raise
        complain(str(error))
        return USER_ERROR


def usage_error(error: typer.TyperException) -> int:
    """Say what is wrong with the flags, and where help is."""
    context = getattr(error, "ctx", None)
    text = error.format_message()
    if not text:  # no command at all: the help was shown
        return USER_ERROR
    complain(text + (f" See {context.command_path} --help." if context is not None else ""))
    return USER_ERROR


def complain(text: str) -> None:
    """Print a message on standard error."""
    print(f"harmonium: {printable(text)}", file=sys.stderr)
