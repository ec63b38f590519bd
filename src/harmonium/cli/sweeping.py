"""The command that trains many runs: `sweep`."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from filelock import FileLock

from harmonium.cli.comparing import show_comparison
from harmonium.cli.options import DataDir, Json, Quiet
from harmonium.cli.searching import Search
from harmonium.cli.show import Show
from harmonium.cli.signals import StopSignals
from harmonium.cli.trial import Trial, make_trial, validation_nats
from harmonium.runs import Run
from harmonium.runs.atomic import write_atomic
from harmonium.runs.config import read_toml

_PAUSE = 0.2  # seconds between two looks at the processes


def sweep_command(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help=r"A TOML file with a section \[sweep].")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of the runs. Default: sweeps/<name>.", show_default=False),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Runs that are trained at once.")] = 1,
    optuna: Annotated[
        int | None,
        typer.Option(
            min=1, help="Try so many settings, each chosen by what the last ones reached.", show_default=False
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            help="Where a search keeps what was tried: a database URL. Default: a journal in the folder.",
            show_default=False,
        ),
    ] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a run for every combination of some settings, and compare them all.

    The file is that of `harmonium train` with a section [sweep], in which a setting by its dotted name has a list:
    "training.learning_rate" = [0.01, 0.05]. With --optuna N it may have a range instead, { low = 0.001, high = 0.1, log
    = true }, and N runs are trained, each where the likelihoods of validation data so far promise most. The same
    command goes on after a stop: runs that are done are kept, others resume exactly. Started on several machines that
    share the folder it is one sweep: each takes runs that nobody has, and those of a machine that died. At the end they
    are compared, the best by validation likelihood first.
    """
    show = Show(as_json=as_json, quiet=quiet)
    folder = output or Path("sweeps") / config.stem
    settings = read_toml(config)
    spaces = settings.pop("sweep", None)
    if not isinstance(spaces, Mapping) or not spaces:
        raise ValueError(
            'A sweep needs a section [sweep] with a list for each setting, such as "model.n_hidden" = [64, 128].'
        )
    if storage is not None and optuna is None:
        raise ValueError("--storage keeps what a search tried. Say how many runs it makes with --optuna N.")
    search = None if optuna is None else Search(settings, spaces, folder, optuna, data_dir, storage)
    trials = make_trials(settings, spaces, folder, data_dir) if search is None else search.trials()
    done = sum(trial.done() for trial in trials)
    show.line(f"{len(trials) if optuna is None else optuna} runs in {folder}, {done} of them done")
    with StopSignals().installed(), show.warnings():
        if search is None:
            failed = train_all(itertools.chain(trials, trials), jobs, show)  # again, for what others left
        else:
            failed = train_all(search, jobs, show, search.tell)
            trials = search.trials()
        runs = [Run.open(trial.folder) for trial in trials if trial.done()]
        if len(runs) > 1:
            show_comparison(sorted(runs, key=validation_nats, reverse=True), folder / "compare.html", show)
        left = sum(not trial.done() for trial in trials) - len(failed)
        if left > 0:
            show.line(f"{left} runs are being trained by others, or were given up there")
    if failed:
        raise ValueError(f"{len(failed)} of {len(trials)} runs failed: {'; '.join(failed)}.")


def make_trials(
    settings: Mapping[str, Any], lists: Mapping[str, Any], folder: Path, data_dir: str | None = None
) -> list[Trial]:
    """Return a trial for each combination of the lists in [sweep], checked before any is trained."""
    for name, values in lists.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"[sweep] {name!r} must be a list of values. Got {values!r}. A range needs --optuna N.")
    trials = []
    for values in itertools.product(*lists.values()):
        point = dict(zip(lists, values, strict=True))
        words = [f"{name.rpartition('.')[2]}-{value}" for name, value in point.items()]
        place = folder / re.sub(r"[^\w.-]+", "-", "_".join(words))
        trials.append(make_trial(settings, point, place, data_dir))
    if len({trial.folder for trial in trials}) < len(trials):
        raise ValueError("Two combinations of [sweep] have the same name. Leave out values that are given twice.")
    return trials


def train_all(
    trials: Iterable[Trial], jobs: int, show: Show, tell: Callable[[Trial, Run | None], None] | None = None
) -> list[str]:
    """Train `jobs` at a time, each in a process of its own, taken when there is room; return what failed, in words.

    `tell` hears of each that ended, with its run, or None where it failed. What others have, or have done, is left to
    them.
    """
    waiting = iter(trials)
    running: list[tuple[Trial, FileLock, subprocess.Popen[str]]] = []
    failed = []
    own: set[Path] = set()
    try:
        while True:
            while len(running) < jobs and (trial := next(waiting, None)) is not None:
                if trial.folder not in own and (claim := trial.claim()) is not None:
                    own.add(trial.folder)
                    running.append((trial, claim, launch(trial)))
            if not running:
                break
            time.sleep(_PAUSE)
            ended = [one for one in running if one[2].poll() is not None]
            running = [one for one in running if one not in ended]
            for trial, claim, process in ended:
                _, errors = process.communicate()
                run = None if process.returncode else Run.open(trial.folder)
                if tell is not None:
                    tell(trial, run)
                claim.release()
                if run is None:
                    failed.append(f"{trial.folder.name}: {errors.strip().splitlines()[-1] if errors else 'no word'}")
                    show.warn(failed[-1])
                    continue
                show.event("run", folder=str(run.folder))
                show.line(f"{trial.folder.name}  {run.listed().score}")
    finally:  # a stop ends them; they have saved what they had
        for _, _, process in running:
            process.terminate()
        for _, claim, process in running:
            process.communicate()
            claim.release()
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
