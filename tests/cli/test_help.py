"""Help is quick and true, and so are the version and completion."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys

import pytest
import typer

import harmonium
from harmonium.cli.commands import COMMANDS
from harmonium.cli.entry import run


def test_the_list_of_commands_says_what_they_say_of_themselves() -> None:
    for place, text in COMMANDS.values():
        module, _, name = place.partition(".")
        found = getattr(importlib.import_module(f"harmonium.cli.{module}"), name)
        first = found.info.help if isinstance(found, typer.Typer) else (inspect.getdoc(found) or "").splitlines()[0]
        assert text == first


def loaded(*arguments: str, **variables: str) -> tuple[str, str]:
    """Return what a command prints, and which of the heavy packages it has imported."""
    code = (
        "import sys\nfrom harmonium.cli.entry import run\nrun(sys.argv[1:])\n"
        "print([m for m in ('torch', 'numpy', 'pydantic', 'matplotlib') if m in sys.modules], file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []], ids=str)
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    out, err = loaded(*arguments)
    assert err.splitlines()[-1] == "[]"
    assert "train" in out or out == f"harmonium {harmonium.__version__}\n"


def test_the_control_imports_torch() -> None:
    assert "torch" in loaded("info")[1]


def test_a_command_has_its_own_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--help"]) == 0
    out = capsys.readouterr().out
    assert "--learning-rate" in out and "--n-hidden" in out
    assert run(["trai"]) == 2
    assert "Did you mean 'train'?" in capsys.readouterr().err


def test_public_names_and_rooms_are_there_when_asked_for() -> None:
    assert harmonium.RBM is importlib.import_module("harmonium.models").RBM
    assert harmonium.learning.objectives.CD is harmonium.CD
    assert "RBM" in dir(harmonium)
    with pytest.raises(AttributeError, match="has no attribute 'Perceptron'"):
        harmonium.Perceptron  # noqa: B018


def test_brackets_in_a_help_are_shown_and_lines_flow(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["sweep", "--help"]) == 0
    out = capsys.readouterr().out
    assert "a section [sweep], in which" in " ".join(out.split())
    assert "A TOML file with a section [sweep]." in " ".join(out.split())
    paragraph = out[out.index("The file is that") : out.index("Arguments")].strip().splitlines()
    assert all(len(line.strip()) > 60 for line in paragraph[:4]), "broken where the docstring is"


def test_a_flag_of_several_kinds_says_what_it_is_for_each() -> None:
    order, labels = (importlib.import_module("harmonium.cli.flags").all_flags()[name] for name in ("order", "labels"))
    for kind, text in (
        ("dbn", "Which layers learn when"),
        ("temporal-rbm", "Frames before"),
        ("hopfield", "Spins that"),
    ):
        assert f"{kind}: {text}" in order.text
    assert labels.text.startswith("jem, class-rbm, network: How many labels") and order.heading == labels.heading
    assert labels.type is int and order.type is str
