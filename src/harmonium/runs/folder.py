"""The folder that a run leaves: settings, metrics, model, training state, evaluation, figures."""

from __future__ import annotations

import fcntl
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w
from safetensors.torch import load_file
from safetensors.torch import save as tensors_to_bytes

from harmonium.runs.atomic import TEMPORARY, remove_atomic, remove_temporary, write_atomic
from harmonium.runs.checkpoints import Checkpoints, detached
from harmonium.types import State

CONFIG, METRICS, TIMING = "config.toml", "metrics.jsonl", "timing.jsonl"
MODEL, EVALUATION, REPORT = "model.safetensors", "evaluation.json", "report.html"
CHECKPOINTS, FIGURES, LOCK = "checkpoints", "figures", ".lock"
FILES = (CONFIG, METRICS, TIMING, MODEL, EVALUATION, REPORT, CHECKPOINTS, FIGURES)


class Listed(NamedTuple):
    """The line of a run in a list: what it learns from, what it is, how far it has come, and its score, if any."""

    data: str
    model: str
    size: str
    n_epochs: int
    epochs: int
    score: str


class RunFolder:
    """The files of one run.

    `config.toml` has the settings, `metrics.jsonl` one line an epoch, `model.safetensors` the model (the averaged one
    where an average is kept), `checkpoints/` the training state, `evaluation.json` the scores, `figures/` and
    `report.html` the pictures. Wall-clock times are apart, in `timing.jsonl`. All but the two files of lines are
    written atomically, and those a whole line at a time.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoints = Checkpoints(folder / CHECKPOINTS)

    def write_settings(self, settings: Mapping[str, Any], *, overwrite: bool = False) -> None:
        """Make the folder with these settings. A run that is there already is kept, unless `overwrite`."""
        path = self.folder
        if path.exists() and not path.is_dir():
            raise ValueError(f"{path} is a file. Choose another folder for the run.")
        held = {item.name for item in path.iterdir() if not _unfinished(item)} if path.is_dir() else set()
        if held and CONFIG not in held:
            raise ValueError(f"{path} is a folder with other things in it. Choose a new folder for the run.")
        if held and not overwrite:
            raise ValueError(
                f"{path} already holds a run. Go on with it (harmonium resume {path}), choose another folder with "
                "--output, or replace it with --overwrite."
            )
        path.mkdir(parents=True, exist_ok=True)
        for name in sorted(held & set(FILES), key=FILES.index, reverse=True):  # the configuration last
            remove_atomic(path / name)
        remove_temporary(path)
        write_atomic(path / CONFIG, tomli_w.dumps(settings).encode())

    def parameters(self, device: str = "cpu") -> State:
        """Return what `model.safetensors` holds."""
        path = self.folder / MODEL
        if not path.is_file():
            raise ValueError(f"{self.folder} has no model yet. Train it with: harmonium resume {self.folder}")
        return load_file(path, device=device)

    def write_model(self, parameters: State) -> None:
        """Write the parameters."""
        write_atomic(self.folder / MODEL, tensors_to_bytes(detached(parameters)))

    def metrics(self) -> list[dict[str, Any]]:
        """Return the records of the epochs so far, in order."""
        return read_lines(self.folder / METRICS)

    def write_metrics(self, records: Iterable[dict[str, Any]]) -> None:
        """Write the records anew: those of the checkpoint from which a run goes on."""
        write_atomic(self.folder / METRICS, b"".join(map(as_line, records)))

    def append(self, name: str, record: dict[str, Any]) -> None:
        """Add a line to `metrics.jsonl` or `timing.jsonl`, in one write."""
        with (self.folder / name).open("ab", buffering=0) as file:
            file.write(as_line(record))

    @property
    def cpu_seconds(self) -> float:
        """The time of processes that training has taken so far, over all stops."""
        lines = read_lines(self.folder / TIMING)
        return float(lines[-1].get("cpu_seconds", 0.0)) if lines else 0.0

    def evaluation(self) -> dict[str, Any] | None:
        """Return the scores, or None if the run has not been evaluated."""
        path = self.folder / EVALUATION
        return json.loads(path.read_bytes()) if path.is_file() else None

    def write_evaluation(self, scores: dict[str, Any]) -> None:
        """Write the scores."""
        write_atomic(self.folder / EVALUATION, json.dumps(finite(scores), indent=2).encode() + b"\n")

    @property
    def n_epochs(self) -> int:
        """The number of epochs done so far."""
        return len(self.metrics())

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the run: a second process that wants to write it is refused. Cleans up after a killed one."""
        with (self.folder / LOCK).open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ValueError(
                    f"{self.folder} is being trained by another process. Wait, or stop that one."
                ) from None
            remove_temporary(self.folder)
            self.checkpoints.tidy()
            yield


def find_folders(root: Path) -> list[Path]:
    """Return the folders of runs in a folder and those within, itself included, sorted by their names."""
    patterns = (CONFIG, f"*/{CONFIG}", f"*/*/{CONFIG}")
    return sorted(path.parent for pattern in patterns for path in root.glob(pattern))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines; a last line without its end is one that was never finished, and is left out."""
    if not path.is_file():
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines()]


def as_line(record: dict[str, Any]) -> bytes:
    """Return a record as a line of JSON; numbers that JSON does not know are null."""
    return json.dumps(finite(record), allow_nan=False).encode() + b"\n"


def finite(value: Any) -> Any:
    """Return the value with NaN and infinities as None.

    >>> finite({"a": [1.0, float("nan")]})
    {'a': [1.0, None]}
    """
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _unfinished(path: Path) -> bool:
    return path.name.startswith(TEMPORARY) or path.name == LOCK
