"""The command that trains many runs: `sweep`."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from harmonium.cli.comparing import show_comparison
from harmonium.cli.options import DataDir, Json, Quiet, as_settings
from harmonium.cli.show import Show
from harmonium.cli.signals import StopSignals
from harmonium.runs import Config, Run, resolve
from harmonium.runs.atomic import write_atomic
from harmonium.runs.config import read_toml

_PAUSE = 0.2  # seconds between two looks at the processes


@dataclass(frozen=True)
class Trial:
    """One point of a sweep: the folder of its run, and its configuration."""

    folder: Path
    config: Config

    def done(self) -> bool:
        """Whether it is trained and scored."""
        if not (self.folder / "config.toml").is_file():
            return False
        run = Run.open(self.folder)
        return run.finished and run.evaluation() is not None


def sweep_command(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="A TOML file with a section [sweep].")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of the runs. Default: sweeps/<name>.", show_default=False),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Runs that are trained at once.")] = 1,
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a run for every combination of some settings, and compare them all.

    The file is that of `harmonium train` with a section [sweep], in which a setting by its dotted name has a list:
    "training.learning_rate" = [0.01, 0.05]. The same command goes on after a stop: runs that are done are kept, others
    resume exactly. At the end they are compared, the best by validation likelihood first.
    """
    show = Show(as_json=as_json, quiet=quiet)
    folder = output or Path("sweeps") / config.stem
    trials = make_trials(read_toml(config), folder, data_dir)
    show.line(f"{len(trials)} runs in {folder}, {sum(trial.done() for trial in trials)} of them done")
    with StopSignals().installed(), show.warnings():
        failed = train_all(trials, jobs, show)
        runs = [Run.open(trial.folder) for trial in trials if trial.done()]
        if len(runs) > 1:
            show_comparison(sorted(runs, key=validation_nats, reverse=True), folder / "compare.html", show)
    if failed:
        raise ValueError(f"{len(failed)} of {len(trials)} runs failed: {'; '.join(failed)}.")


def make_trials(settings: Mapping[str, Any], folder: Path, data_dir: str | None = None) -> list[Trial]:
    """Return a trial for each combination of the lists in [sweep], checked before any is trained."""
    lists = settings.get("sweep")
    if not isinstance(lists, Mapping) or not lists or not all(isinstance(v, list) and v for v in lists.values()):
        raise ValueError(
            'A sweep needs a section [sweep] with a list for each setting, such as "model.n_hidden" = [64, 128].'
        )
    rest = {name: value for name, value in settings.items() if name != "sweep"}
    trials = []
    for values in itertools.product(*lists.values()):
        point = dict(zip(lists, values, strict=True))
        config = resolve(rest, as_settings({"data.data_dir": data_dir, **point}))
        words = [f"{name.rpartition('.')[2]}-{value}" for name, value in point.items()]
        trials.append(Trial(folder / re.sub(r"[^\w.-]+", "-", "_".join(words)), config))
    if len({trial.folder for trial in trials}) < len(trials):
        raise ValueError("Two combinations of [sweep] have the same name. Leave out values that are given twice.")
    return trials


def train_all(trials: list[Trial], jobs: int, show: Show) -> list[str]:
    """Train what is not done yet, `jobs` at a time, each in a process of its own; return what failed, in words."""
    waiting = [trial for trial in trials if not trial.done()]
    running: list[tuple[Trial, subprocess.Popen[str]]] = []
    failed = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                trial = waiting.pop(0)
                running.append((trial, launch(trial)))
            time.sleep(_PAUSE)
            ended = [pair for pair in running if pair[1].poll() is not None]
            running = [pair for pair in running if pair not in ended]
            for trial, process in ended:
                _, errors = process.communicate()
                if process.returncode:
                    failed.append(f"{trial.folder.name}: {errors.strip().splitlines()[-1] if errors else 'no word'}")
                    show.warn(failed[-1])
                    continue
                run = Run.open(trial.folder)
                show.event("run", folder=str(run.folder))
                show.line(f"{trial.folder.name}  {run.listed().score}")
    finally:  # a stop ends them; they have saved what they had
        for _, process in running:
            process.terminate()
        for _, process in running:
            process.communicate()
    return failed


def launch(trial: Trial) -> subprocess.Popen[str]:
    """Start the training of a trial, or go on with it."""
    if (trial.folder / "config.toml").is_file():
        arguments = ["resume", str(trial.folder)]
    else:
        trial.folder.parent.mkdir(parents=True, exist_ok=True)
        settings = trial.folder.with_suffix(trial.folder.suffix + ".toml")
        write_atomic(settings, trial.config.to_toml().encode())
        arguments = ["train", str(settings), "--output", str(trial.folder)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-m", "harmonium.cli", *arguments, "--quiet"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def validation_nats(run: Run) -> float:
    """Return the validation log-likelihood of a run, by which a sweep chooses; -∞ where it has none."""
    scores = run.evaluation() or {}
    return float(scores.get("valid", {}).get("value") or -float("inf"))
