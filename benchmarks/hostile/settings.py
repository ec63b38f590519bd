"""Hostile settings and flags: misspelled, out of range, of the wrong type, nested without end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomli_w

from benchmarks.hostile.attack import Attack, mutated
from harmonium.runs import KINDS, resolve
from harmonium.runs.settings import DataSection, ModelSection, RunSection, TrainingSection

SHARED = {"data": DataSection, "model": ModelSection, "training": TrainingSection, "run": RunSection}
QUICK = {
    "data": {"name": "bars-and-stripes", "options": {"size": 3}},
    "model": {"n_hidden": 2},
    "training": {"epochs": 1, "n_chains": 4},
    "run": {"report": False, "evaluate": False},
}
WRONG: dict[str, list[Any]] = {
    "data.name": ["", "no such data", 3, [], {}, True, "x" * 10**5, "\x1b[2J", "[bold]x[/bold]", "$x$", "../../x"],
    "data.binarize": ["yes", 1, True, [], "THRESHOLD"],
    "data.seed": [-1, 2**63, 2**64, 10**40, 1.5, "x", float("nan"), True],
    "data.options": [3, "x", {"sise": 3}, {"size": -1}, {"size": 0}, {"size": 10**6}, {"size": "x"}, {"size": 2.5}],
    "data.columns": ["a", 3, "a=b=c=", {"a": 3}],
    "model.kind": ["", "rbn", 3, [], "RBM"],
    "model.n_hidden": [0, -1, 10**12, 10**30, 1.5, "many", float("inf"), [], {}],
    "model.hidden": ["", "bernouli", 3, []],
    "model.options": [3, "x", {"levles": 3}, {"weight": 1}, []],
    "training.epochs": [-1, 1.5, "x", float("nan")],
    "training.batch_size": [0, -1, 1.5, "x"],
    "training.objective": ["", "pdc", 3],
    "training.n_steps": [0, -1, "x"],
    "training.n_chains": [0, -1, 10**12, 10**30, "x"],
    "training.betas": [[], "x", 3, [float("nan")], ["x"], [[0.5]]],
    "training.optimizer": ["adamm", 3],
    "training.learning_rate": [0, -1, float("nan"), float("inf"), "x", 1e400],
    "training.schedule": ["up", 1],
    "training.final_learning_rate": [-1, float("nan")],
    "training.momentum": [-0.1, 1, 2, float("nan")],
    "training.weight_decay": [-1, float("nan"), float("inf")],
    "training.clip": [-1, float("nan")],
    "training.average": [-1, 1, 2, float("nan")],
    "training.sparsity_target": [0, 1, float("nan")],
    "run.seed": [-1, 2**63, 10**40, 1.5, "x", True],
    "run.device": ["", "gpu", "cuda:999", "cuda", "meta", "cpu:7", "mps", "xpu", "x" * 1000, 3],
    "run.threads": [0, -1, 10**9, 10**30, "x"],
    "run.ais_chains": [0, 1, 10**12, "x"],
    "run.ais_betas": [0, 1, "x"],
    "run.checkpoint_seconds": [0, -1, float("nan")],
}
"""Values that no setting may have."""


def misspelled(name: str, rng: random.Random) -> str:
    """Return a name with a letter less, twice, or an underscore more."""
    if len(name) == 1:
        return 2 * name
    at = rng.randrange(len(name) - 1)
    start, rest = name[:at], name[at:]
    return rng.choice((start + rest[1:], start + rest[0] + rest, start + "_" + rest))


def wrong_settings(folder: Path, rng: random.Random) -> Iterator[Attack]:
    """Yield configurations with one thing wrong."""
    number = 0

    def attack(kind: str, name: str, text: str | bytes) -> Attack:
        nonlocal number
        path = folder / f"config-{number}.toml"
        number += 1
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Attack(kind, name[:60], ("train", str(path), "-q", "-o", "run"), refuse=True)

    for name, values in WRONG.items():
        section, _, key = name.partition(".")
        for value in values:
            settings = {**QUICK, section: {**QUICK[section], key: value}}
            yield attack("values out of range", f"{name} = {value!r}"[:60], tomli_w.dumps(settings))
    for section, model in SHARED.items():
        for key in model.model_fields:
            odd = misspelled(key, rng)
            settings = {**QUICK, section: {**QUICK[section], odd: 1}}
            if odd not in model.model_fields:
                yield attack("misspelled settings", f"{section}.{odd}", tomli_w.dumps(settings))
    for kind, made in KINDS.items():
        for key in made.settings.model_fields:
            settings = {**QUICK, "model": {"kind": kind}, kind: {misspelled(key, rng): 1}}
            yield attack("misspelled settings", f"{kind}.{key}", tomli_w.dumps(settings))
        other = next(name for name, one in KINDS.items() if name != kind and one.settings.model_fields)
        settings = {**QUICK, "model": {"kind": kind}, other: {}}
        yield attack("sections of another kind", f"{kind}: {other}", tomli_w.dumps(settings))
    texts: dict[str, str | bytes] = {
        "dots": "a." * 100_000 + "a = 1",
        "dotted table": "[" + "a." * 50_000 + "a]",
        "brackets": "a = " + "[" * 100_000,
        "braces": "a = " + "{a=" * 50_000,
        "megabytes": "# " + "x" * 2**22,
        "long number": "[training]\nepochs = " + "9" * 100_000,
        "no text": b"\xff\xfe\x00\x01",
        "empty": "",
        "one key": "data",
        "twice": "[data]\nname='moons'\n[data]\nname='moons'",
        "numbers for sections": "data = 3\nmodel = 4",
        "lists for sections": "data = [[1]]",
        "date": "[data]\nname = 1979-05-27",
        "nul": '[data]\nname = "a\\u0000b"',
    }
    for name, text in texts.items():
        yield attack("files that are no configuration", name, text)
    words = resolve(QUICK).to_toml().encode()
    for i in range(60):
        made = attack("mutations of .toml", str(i), mutated(words, rng))
        yield Attack(made.kind, made.name, (*made.command, "--epochs", "1", "--n-hidden", "2"))


FLAGS = tuple(
    "--data --model --n-hidden --epochs --batch-size --learning-rate --objective --device --seed --threads --binarize "
    "--hidden --optimizer --schedule --n-chains --n-steps --momentum --columns --set --output".split()
)
VALUES = (
    *("", "nan", "inf", "-inf", "-1", "1e400", "99999999999999999999999", "x", "--", "[bold]"),
    *("\x1b[31m", "💥", "0x10"),
)
FREE = {"--columns", "--output"}
"""Flags that take any text: it may be accepted."""

COMMANDS = tuple(
    "train sample inpaint evaluate report info list logz resume impute score transform compare sweep fine-tune demo "
    "compare-objectives reproduce nothing".split()
)


def wrong_flags(run: Path) -> Iterator[Attack]:
    """Yield command lines that are wrong, of every command."""
    base = ("--data", "bars-and-stripes", "--n-hidden", "2", "--epochs", "1", "--no-report", "--no-evaluate", "-q")
    for flag in FLAGS:
        for value in VALUES:
            command = ("train", *base, *(() if flag == "--output" else ("-o", "run")), flag, value)
            yield Attack("flags with wrong values", f"{flag} {value!r}", command, refuse=flag not in FREE)
    for command in COMMANDS:
        for more in (("--no-such-flag",), ("-Z",), ("--seed",), ("a", "b", "c", "d")):
            words = " ".join((command, *more))
            yield Attack("flags that are none", words, (command, *more), refuse=True)
    wrong = (
        *(("-n", value) for value in ("0", "-3", "x", str(10**12))),
        *(("--seed", value) for value in ("-1", str(2**64))),
        *(("--class", value) for value in ("-1", "3")),
        *(("-o", value) for value in ("x.exe", "no/where/x.npy", "/proc/x.npy")),
        ("--steps", "0"),
    )
    for more in wrong:
        yield Attack("flags with wrong values", f"sample {' '.join(more)}", ("sample", str(run), *more), refuse=True)
    for more in (("--missing", "2"), ("--missing", "nan"), ("--missing", "middle"), ("-n", "0"), ("-o", "x.txt")):
        yield Attack("flags with wrong values", f"inpaint {' '.join(more)}", ("inpaint", str(run), *more), refuse=True)
    for more in (("--method", "magic"), ("--n-chains", "0"), ("--n-betas", "1"), ("--seed", "x")):
        yield Attack("flags with wrong values", f"logz {' '.join(more)}", ("logz", str(run), *more), refuse=True)
    for more in (("--epochs", "0"), ("--epochs", "-1"), ("--epochs", "x")):
        yield Attack("flags with wrong values", f"resume {' '.join(more)}", ("resume", str(run), *more), refuse=True)
