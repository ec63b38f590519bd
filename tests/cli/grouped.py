"""Commands that several workers run together, for the tests of the command line."""

from __future__ import annotations

import contextlib
import io
import os

from harmonium import workers
from harmonium.cli.entry import run


def commands(lines: list[list[str]], environment: dict[str, str]) -> list[tuple[int, str]]:
    """Run commands one after another; return their exit codes and what this worker said."""
    os.environ |= environment
    return [_run(line) for line in lines]


def counted_apart(line: list[str]) -> tuple[int, str]:
    """Run a command after a restart that the agent of one worker counts, and that of the other does not."""
    os.environ["TORCHELASTIC_RESTART_COUNT"] = str(workers.rank())
    return _run(line)


def _run(line: list[str]) -> tuple[int, str]:
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        code = run(line)
    return code, said.getvalue()


def unlike(folder: str) -> tuple[int, str]:
    """Run a command that is another one on each worker."""
    return _run(["train", "--data", "bars-and-stripes", "--epochs", str(1 + workers.rank()), "--output", folder])
