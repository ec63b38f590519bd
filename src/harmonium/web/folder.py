"""The runs folder as the page may see it: what lies in it, by name, and nothing that a link leads to."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harmonium.data import DATASETS, EMBEDDED
from harmonium.experiments import Experiment, open_experiment
from harmonium.runs import Run, varying_settings
from harmonium.runs.folder import CONFIG, EVALUATION, METRICS, MODEL, STOP
from harmonium.runs.lock import is_locked
from harmonium.runs.plain import check_plain
from harmonium.web.limits import N_ENTRIES, N_RUNS

WATCHED = (CONFIG, METRICS, EVALUATION, MODEL, STOP)
"""The files whose change changes what is shown of a run."""

TROUBLE = (ValueError, OSError, KeyError, TypeError, AttributeError, RecursionError)
"""What may go wrong with a folder that is broken, half written or deleted meanwhile."""

Stamp = tuple[int, int, int]
Signature = tuple[Stamp | None, ...]
Row = dict[str, Any]


class Missing(LookupError):  # noqa: N818  (an answer, not a failure)
    """There is no run of that name in the folder, or no longer."""


@dataclass
class Folder:
    """Finds, opens and describes the runs below `root`. A name that `scan` did not find cannot be opened.

    Nothing outside of the folder is read; `data_dir` is where a run that is resumed finds its data.
    """

    root: Path
    data_dir: Path | None = None
    _found: dict[str, Path] = field(default_factory=dict, init=False)
    _opened: dict[str, tuple[Stamp | None, Run | Experiment]] = field(default_factory=dict, init=False)
    _rows: dict[str, tuple[Signature, bool, Row]] = field(default_factory=dict, init=False)
    _varying: tuple[list[Run], list[dict[str, Any]]] = field(default=([], []), init=False)

    def scan(self) -> dict[str, Path]:
        """Return the folders of runs by their names, two levels deep; links are not followed."""
        found: dict[str, Path] = {}
        waiting, n = [(self.root, "", 0)], 0
        while waiting and len(found) < N_RUNS:
            folder, name, depth = waiting.pop(0)
            try:
                with os.scandir(folder) as entries:
                    listed = sorted(entries, key=lambda entry: entry.name)
            except OSError:
                continue
            n += len(listed)
            if any(entry.name == CONFIG and entry.is_file(follow_symlinks=False) for entry in listed):
                found[name or "."] = folder
            elif depth < 2 and n <= N_ENTRIES:
                inner = [e for e in listed if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")]
                waiting += [(Path(e.path), f"{name}/{e.name}" if name else e.name, depth + 1) for e in inner]
        self._found = found
        return found

    def path(self, name: str) -> Path:
        """Return the folder of a run that is there now, reached through folders alone."""
        path = self._found.get(name)
        if path is None or not self._is_plain(path):
            path = self.scan().get(name)
        if path is None:
            raise Missing(f"There is no run {name!r} in this folder, or no longer.")
        return path

    def _is_plain(self, path: Path) -> bool:
        inner = path.relative_to(self.root)
        places = [path, *(self.root / parent for parent in inner.parents if parent.parts)]
        try:
            return all(
                stat.S_ISDIR(os.lstat(place).st_mode) for place in places if place != self.root
            ) and stat.S_ISREG(os.lstat(path / CONFIG).st_mode)
        except OSError:
            return False

    def open(self, name: str) -> Run | Experiment:
        """Open what a name stands for."""
        path = self.path(name)
        check_plain(path)
        stamp = _stamp(path / CONFIG)
        known = self._opened.get(name)
        if known is not None and known[0] == stamp:
            return known[1]
        experiment = open_experiment(path)
        opened = Run.open(path, data_dir=self.data_dir) if experiment is None else experiment
        self._opened[name] = (stamp, opened)
        return opened

    def check_data(self, run: Run) -> None:
        """Raise if a resume would read what the run was not trained on: files are known by their fingerprints."""
        name = run.config.data.name
        inside = [folder.resolve() for folder in (self.root, self.data_dir) if folder is not None]
        if name in EMBEDDED or (name in DATASETS and self.data_dir is not None) or run.kept() is not None:
            return
        if name in DATASETS or not any(Path(name).resolve().is_relative_to(place) for place in inside):
            raise ValueError(
                "The page does not read data outside of the runs folder for a run that has not begun. Start it with "
                "--data-dir and their folder, or resume the run on the command line."
            )

    def rows(self) -> list[Row]:
        """Return a line for each run; those whose files are as they were are not read again."""
        found = self.scan()
        for name in set(self._rows) - set(found):
            del self._rows[name]
            self._opened.pop(name, None)
        rows = []
        for name, path in found.items():
            with contextlib.suppress(Missing):  # deleted since the scan
                rows.append(self._row(name, path))
        runs = [opened for _, opened in self._opened.values() if isinstance(opened, Run)]
        if [*map(id, runs)] != [*map(id, self._varying[0])]:
            self._varying = runs, varying_settings(runs)
        varies = {
            str(run.folder): ", ".join(f"{key} {value}" for key, value in settings.items())
            for run, settings in zip(*self._varying, strict=True)
        }
        return [{**row, "varies": varies.get(str(found[row["name"]]), "")} for row in rows]

    def row(self, name: str) -> Row:
        """Return the line of one run."""
        return dict(self._row(name, self.path(name)))

    def _row(self, name: str, path: Path) -> Row:
        signature: Signature = tuple(_stamp(path / file) for file in WATCHED)
        known = self._rows.get(name)
        at_rest = known is not None and known[0] == signature and known[2]["status"] == "finished"
        held = not at_rest and is_locked(path)
        if known is not None and known[:2] == (signature, held):
            return known[2]
        row = self._described(name, held)
        row["changed"] = max((stamp[2] for stamp in signature if stamp), default=0) / 1e9
        model = signature[WATCHED.index(MODEL)]
        row["model_version"] = "" if model is None else f"{model[0]}-{model[2]}"
        self._rows[name] = (signature, held, row)
        return row

    def _described(self, name: str, held: bool) -> Row:
        row: Row = {"name": name, "status": "broken", "error": "", "varies": ""}
        row |= {"data": "", "model": "", "size": "", "n_epochs": 0, "epochs": 0, "score": ""}
        try:
            opened = self.open(name)
            row |= opened.listed()._asdict()
            row["status"] = _status(opened, row["n_epochs"], row["epochs"], held)
        except TROUBLE as error:
            self._opened.pop(name, None)
            row["error"] = words(error)
        row["data"] = Path(row["data"]).name
        return row


def _status(opened: Run | Experiment, n_epochs: int, epochs: int, held: bool) -> str:
    if held:
        learns = n_epochs < epochs
        return "stopping" if learns and opened.asked_to_stop else "training" if learns else "evaluating"
    finished = opened.finished if isinstance(opened, Run) else n_epochs >= epochs
    return "finished" if finished else "stopped"


def _stamp(path: Path) -> Stamp | None:
    """Return what of a file tells whether it changed: its number, its size, its time."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def words(error: BaseException) -> str:
    """Return what went wrong in one line."""
    text = " ".join(str(error).split())
    return (text or type(error).__name__)[:500]
