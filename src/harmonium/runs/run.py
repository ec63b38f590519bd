"""A run is a folder: configuration, metrics, model, training state, evaluation, figures."""

from __future__ import annotations

import fcntl
import json
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor, nn

from harmonium.data import DATASETS, Data
from harmonium.runs.atomic import TEMPORARY, remove_atomic, remove_temporary, write_atomic
from harmonium.runs.build import MODELS, build_model, sample_shape
from harmonium.runs.checkpoints import Checkpoints, detached
from harmonium.runs.config import Config
from harmonium.runs.prepare import Prepared, prepare
from harmonium.samplers import Sampler
from harmonium.types import State

CONFIG, METRICS, TIMING = "config.toml", "metrics.jsonl", "timing.jsonl"
MODEL, EVALUATION, REPORT = "model.safetensors", "evaluation.json", "report.html"
CHECKPOINTS, FIGURES, LOCK = "checkpoints", "figures", ".lock"
FILES = (CONFIG, METRICS, TIMING, MODEL, EVALUATION, REPORT, CHECKPOINTS, FIGURES)


class Run:
    """The folder of one run. `Run.create` makes it from a configuration, `Run.open` finds it again.

    `config.toml` is the resolved configuration, `metrics.jsonl` has one line an epoch, `model.safetensors` the model
    (the averaged one where an average is kept), `checkpoints/` the training state, `evaluation.json` the scores,
    `figures/` and `report.html` the pictures. Wall-clock times are apart, in `timing.jsonl`.
    """

    def __init__(self, folder: Path, config: Config) -> None:
        self.folder = folder
        self.config = config
        self.checkpoints = Checkpoints(folder / CHECKPOINTS)

    @classmethod
    def create(cls, folder: str | Path, config: Config, *, overwrite: bool = False) -> Run:
        """Make the folder of a new run. A run that is there already is kept, unless `overwrite`."""
        path = Path(folder)
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
        config = settled(config)
        write_atomic(path / CONFIG, config.to_toml().encode())
        return cls(path, config)

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """Open a run that is there."""
        path = Path(folder)
        if not (path / CONFIG).is_file():
            raise ValueError(f"{path} holds no run: there is no {CONFIG} in it. `harmonium list` shows the runs.")
        return cls(path, Config.read(path / CONFIG))

    @cached_property
    def prepared(self) -> Prepared:
        """The data as the model sees them, and the way back."""
        return prepare(self.config)

    def data(self) -> Data:
        """Return the data as the model sees them, each sample in its own shape; `note` says how they were made."""
        return self.prepared.data

    def rows(self, split: str) -> Tensor | None:
        """Return the samples of a split in the shape and type that the model takes, or None without that split."""
        model = self.untrained()
        x = self.prepared.rows(split, sample_shape(model, self.data()))
        return None if x is None else x.to(next(model.parameters()))

    def restored(self, x: Tensor) -> Tensor:
        """Return samples of the model in the shape and on the scale of the data."""
        return self.prepared.restored(x)

    def sampler(self) -> Sampler | None:
        """Return how the chains of the model run; None stands for the default of `sample`."""
        own = MODELS[self.config.model.kind].sampler
        return None if own is None else own(self.config)

    def start(self, n: int, y: Tensor | None = None, *, generator: torch.Generator) -> Tensor | None:
        """Return where `n` chains start, of classes `y` if given; None leaves it to the model."""
        own = MODELS[self.config.model.kind].start
        return None if own is None else own(self.config, self.data(), n, y, generator=generator)

    def untrained(self) -> nn.Module:
        """Return the model before the first update."""
        return build_model(self.config, self.data(), generator=torch.Generator().manual_seed(self.config.run.seed))

    def model(self) -> nn.Module:
        """Return the model with the parameters of `model.safetensors`, ready to be used."""
        path = self.folder / MODEL
        if not path.is_file():
            raise ValueError(f"{self.folder} has no model yet. Train it with: harmonium resume {self.folder}")
        model = self.untrained()
        try:
            model.load_state_dict(load_file(path, device=self.config.run.device))
        except (SafetensorError, RuntimeError) as error:
            raise ValueError(f"{path} does not hold the parameters of {self.config.model.kind}: {error}") from error
        return model.eval()

    def write_model(self, parameters: State) -> None:
        """Write the parameters, atomically."""
        write_atomic(self.folder / MODEL, tensors_to_bytes(detached(parameters)))

    def metrics(self) -> list[dict[str, Any]]:
        """Return the records of the epochs so far, in order."""
        return read_lines(self.folder / METRICS)

    def write_metrics(self, records: Iterable[dict[str, Any]]) -> None:
        """Write the records anew, atomically: those of the checkpoint from which a run goes on."""
        write_atomic(self.folder / METRICS, b"".join(map(as_line, records)))

    def append(self, name: str, record: dict[str, Any]) -> None:
        """Add a line to `metrics.jsonl` or `timing.jsonl`, in one write."""
        with (self.folder / name).open("ab", buffering=0) as file:
            file.write(as_line(record))

    def evaluation(self) -> dict[str, Any] | None:
        """Return the scores, or None if the run has not been evaluated."""
        path = self.folder / EVALUATION
        return json.loads(path.read_bytes()) if path.is_file() else None

    def write_evaluation(self, scores: dict[str, Any]) -> None:
        """Write the scores, atomically."""
        write_atomic(self.folder / EVALUATION, json.dumps(finite(scores), indent=2).encode() + b"\n")

    @property
    def figures(self) -> Path:
        """The folder of the pictures, made when it is first asked for."""
        path = self.folder / FIGURES
        path.mkdir(exist_ok=True)
        return path

    @property
    def n_epochs(self) -> int:
        """The number of epochs done so far."""
        return len(self.metrics())

    @property
    def finished(self) -> bool:
        """Whether all epochs are done."""
        return self.n_epochs >= self.config.training.epochs and (self.folder / MODEL).is_file()

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


def settled(config: Config) -> Config:
    """Return the configuration with what this machine decides: the number of threads, and paths from the root.

    >>> settled(Config.resolve({"data": {"name": "ising"}, "run": {"threads": 2}})).run.threads
    2
    """
    data, run = config.data, config.run
    if data.name not in DATASETS and Path(data.name).expanduser().exists():
        data = data.model_copy(update={"name": str(Path(data.name).expanduser().resolve())})
    if data.data_dir is not None:
        data = data.model_copy(update={"data_dir": str(Path(data.data_dir).expanduser().resolve())})
    if run.threads is None:
        run = run.model_copy(update={"threads": torch.get_num_threads()})
    return config.model_copy(update={"data": data, "run": run})


def next_folder(root: Path, config: Config) -> Path:
    """Return the next free `<root>/<data>-<model>-<n>`."""
    stem = re.sub(r"[^\w.-]+", "-", f"{Path(config.data.name).stem}-{config.model.kind}")
    taken = [
        int(path.name.removeprefix(f"{stem}-"))
        for path in root.glob(f"{stem}-*")
        if path.name[len(stem) + 1 :].isdigit()
    ]
    return root / f"{stem}-{max(taken, default=0) + 1}"


def find_runs(root: Path) -> list[Run]:
    """Return the runs in a folder, itself included, sorted by their names."""
    return [Run.open(path.parent) for path in sorted([*root.glob(CONFIG), *root.glob(f"*/{CONFIG}")])]


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
