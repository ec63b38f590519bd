"""Run folders that were damaged or forged: every file of theirs, under every command that reads them."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.hostile.attack import Attack, mutated
from benchmarks.tiny_runs import write_cases
from harmonium.runs import Run, resolve, train
from harmonium.runs.config import read_toml

COMMANDS = (
    ("sample", "-n", "2", "--steps", "2", "-o", "x.npy"),
    ("info",),
    ("resume",),
    ("list",),
    ("evaluate", "--n-chains", "2", "--n-betas", "2"),
)
KINDS = ("pcd", "gaussian", "table", "class-rbm", "dbn", "temporal-rbm")
CHECKED = ("model.safetensors", "data.safetensors", "data.json")
"""Files with a checksum: one that was changed must not be sampled."""


def make_runs(folder: Path) -> dict[str, Path]:
    """Train a tiny run of several kinds."""
    made = {}
    for name, path in write_cases(folder, every=2).items():
        if name in KINDS:
            short = {"training": {"epochs": 2}}
            train(run := Run.create(folder / "good" / name, resolve(read_toml(path), short)))
            made[name] = run.folder
    return made


def damaged_folders(folder: Path, runs: dict[str, Path], n: int, rng: random.Random) -> Iterator[Attack]:
    """Yield commands on copies of runs with one file mutated, missing, or replaced by what is no file."""
    names = list(runs)
    for i in range(n):
        copy = folder / f"damaged-{i}"
        shutil.copytree(runs[names[i % len(names)]], copy)
        files = sorted(path for path in copy.rglob("*") if path.is_file() and path.name != ".lock")
        path = files[rng.randrange(len(files))]
        what = rng.choice(("mutate", "mutate", "mutate", "mutate", "remove", "empty", "folder", "pipe", "link"))
        before = path.read_bytes()
        path.unlink()
        if what == "mutate":
            path.write_bytes(mutated(before, rng))
        elif what == "empty":
            path.write_bytes(b"")
        elif what == "folder":
            path.mkdir()
        elif what == "pipe":
            os.mkfifo(path)
        elif what == "link":
            path.symlink_to("/etc/passwd")
        command = COMMANDS[i % len(COMMANDS)]
        changed = what in ("mutate", "empty") and path.is_file() and path.read_bytes() != before
        gone = what == "remove" and path.name in CHECKED[:2]
        unsafe = what in ("pipe", "link") or (changed and path.name in CHECKED) or gone
        arguments = (command[0], str(copy), *command[1:])
        name = f"{command[0]}: {path.name}, {what}"
        yield Attack("damaged runs", name, arguments, refuse=unsafe and command[0] == "sample")
