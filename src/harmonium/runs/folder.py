"""The folder that a run leaves: settings, metrics, model, training state, evaluation, figures."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from harmonium import workers
from harmonium.data.gate import walk
from harmonium.runs.atomic import TEMPORARY, remove, remove_atomic, remove_temporary, sha256, write_atomic
from harmonium.runs.checkpoints import Checkpoints
from harmonium.runs.lock import LOCK, locked
from harmonium.runs.plain import check_plain
from harmonium.runs.tensor_file import checksum, detached, read_tensors, write_tensors
from harmonium.types import State

CONFIG, METRICS, TIMING = "config.toml", "metrics.jsonl", "timing.jsonl"
DATA, DATA_TENSORS, MODEL = "data.json", "data.safetensors", "model.safetensors"
EVALUATION, REPORT, STOP = "evaluation.json", "report.html", "stop"
CHECKPOINTS, FIGURES, CHECKSUM = "checkpoints", "figures", "checksum"
FILES = (CONFIG, METRICS, TIMING, DATA, DATA_TENSORS, MODEL, EVALUATION, REPORT, CHECKPOINTS, FIGURES, STOP)


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
    where an average is kept), `data.json` and `data.safetensors` what it must know of its data to be used without them
    (scales, columns, a few samples, a fingerprint), `checkpoints/` the training state, `evaluation.json` the scores,
    `figures/` and `report.html` the pictures. Wall-clock times are apart, in `timing.jsonl`. All but the two files of
    lines are written atomically, and those a whole line at a time. While there is a file `stop`, the process that
    trains the run saves and ends.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoints = Checkpoints(folder / CHECKPOINTS)

    def write_settings(self, settings: Mapping[str, Any], *, overwrite: bool = False) -> None:
        """Make the folder with these settings. A run that is there already is kept, unless `overwrite`."""
        self._check_free(overwrite=overwrite)  # nothing is made in a folder that is somebody else's
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder):
            held = self._check_free(overwrite=overwrite)
            for name in sorted(held & set(FILES), key=FILES.index, reverse=True):  # the configuration last
                remove_atomic(self.folder / name)
            remove_temporary(self.folder)
            write_atomic(self.folder / CONFIG, tomli_w.dumps(settings).encode())

    def _check_free(self, *, overwrite: bool) -> set[str]:
        """Raise unless a run may be made here; return the names of what is in the folder."""
        path = self.folder
        if path.exists() and not path.is_dir():
            raise ValueError(f"{path} is a file. Choose another folder for the run.")
        if not path.is_dir():
            return set()
        held = {item.name for item in path.iterdir() if not _unfinished(item)}
        if held and CONFIG not in held:
            raise ValueError(f"{path} is a folder with other things in it. Choose a new folder for the run.")
        if held and not overwrite:
            raise ValueError(
                f"{path} already holds a run. Go on with it (harmonium resume {path}), choose another folder with "
                "--output, or replace it with --overwrite."
            )
        check_plain(path)
        return held

    def parameters(self, device: str = "cpu") -> State:
        """Return what `model.safetensors` holds."""
        path = self.folder / MODEL
        if not path.is_file():
            raise ValueError(f"{self.folder} has no model yet. Train it with: harmonium resume {self.folder}")
        return read_tensors(path, device=device)

    def kept(self) -> tuple[dict[str, Any], State] | None:
        """Return what the run keeps of its data, plain values and tensors, or None."""
        path = self.folder / DATA
        if not path.is_file():
            return None
        tensors = read_tensors(self.folder / DATA_TENSORS, finite=False)
        try:
            plain = json.loads(path.read_bytes())
            then = plain.pop(CHECKSUM)
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            raise ValueError(f"{path} cannot be read ({type(error).__name__}). Put back a whole copy.") from error
        if then != _sum_of(plain, tensors):
            raise ValueError(f"{path} or {DATA_TENSORS} is not as the run wrote it. Put back whole copies of both.")
        return plain, tensors

    def write_kept(self, plain: dict[str, Any], tensors: State) -> None:
        """Write what the run keeps of its data: the plain values last, with a checksum of both."""
        write_tensors(self.folder / DATA_TENSORS, tensors, finite=False)
        whole = {**plain, CHECKSUM: _sum_of(plain, tensors)}
        write_atomic(self.folder / DATA, json.dumps(whole, indent=2, ensure_ascii=False).encode() + b"\n")

    def write_model(self, parameters: State) -> None:
        """Write the parameters."""
        write_tensors(self.folder / MODEL, parameters)

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
        return _parsed(path, path.read_bytes()) if path.is_file() else None

    def write_evaluation(self, scores: dict[str, Any]) -> None:
        """Write the scores."""
        write_atomic(self.folder / EVALUATION, json.dumps(finite(scores), indent=2).encode() + b"\n")

    @property
    def n_epochs(self) -> int:
        """The number of epochs done so far: that of the whole lines of the metrics."""
        path = self.folder / METRICS
        return path.read_bytes().count(b"\n") if path.is_file() else 0

    def ask_to_stop(self) -> None:
        """Ask whoever trains the run to save and end."""
        write_atomic(self.folder / STOP, b"")

    @property
    def asked_to_stop(self) -> bool:
        """Whether somebody asked since the training began."""
        return (self.folder / STOP).exists()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the run: a second process that wants to write it is refused. Cleans up after a killed one.

        Of several workers the first one writes.
        """
        check_plain(self.folder)
        if not workers.is_first():
            yield
            return
        with locked(self.folder) as anew:
            remove_temporary(self.folder)
            self.checkpoints.tidy()
            if anew:  # what was asked of an earlier training; from now on a stop is for this one
                self.clear_stop()
            yield

    def clear_stop(self) -> None:
        """Forget what was asked of an earlier training."""
        remove(self.folder / STOP)


def find_folders(root: Path) -> list[Path]:
    """Return the folders of runs in a folder and those within, itself included, sorted by their names."""
    return sorted(path.parent for path in walk(root, lambda name: name == CONFIG, depth=2))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON lines; a last line without its end is one that was never finished, and is left out."""
    if not path.is_file():
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [_parsed(path, line) for line in whole.splitlines()]


def _parsed(path: Path, content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as JSON ({error}). Put back a whole copy.") from error


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


def _sum_of(plain: dict[str, Any], tensors: State) -> str:
    return sha256(json.dumps(plain, sort_keys=True).encode() + checksum(detached(tensors)).encode())


def _unfinished(path: Path) -> bool:
    return path.name.startswith(TEMPORARY) or path.name == LOCK
