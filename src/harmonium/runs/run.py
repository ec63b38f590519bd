"""A run of one model: its folder, its configuration, its data, and the model as it was trained."""

from __future__ import annotations

import re
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from harmonium import workers
from harmonium.data import DATASETS, Data
from harmonium.display import html_table
from harmonium.runs.atomic import write_atomic
from harmonium.runs.build import build_model, prepare
from harmonium.runs.config import read_toml, resolve
from harmonium.runs.folder import CONFIG, MODEL, Listed, RunFolder
from harmonium.runs.kinds import KINDS, AnyKind
from harmonium.runs.outline import as_kept, recalled
from harmonium.runs.plain import check_plain
from harmonium.runs.settings import Config
from harmonium.runs.trained import Trained
from harmonium.runs.values import Prepared


class Run(RunFolder):
    """The folder of one run. `Run.create` makes it from a configuration, `Run.open` finds it again."""

    def __init__(self, folder: Path, config: Config) -> None:
        super().__init__(folder)
        self.config = config

    @classmethod
    def create(cls, folder: str | Path, config: Config, *, overwrite: bool = False) -> Run:
        """Make the folder of a new run. A run that is there already is kept, unless `overwrite`."""
        run = cls(Path(folder), settled(config))
        run.write_settings(run.config.model_dump(exclude_none=True), overwrite=overwrite)
        return run

    @classmethod
    def open(cls, folder: str | Path, *, data_dir: str | Path | None = None) -> Run:
        """Open a run that is there; `data_dir` is where its data are now, if they have moved."""
        path = Path(folder)
        if path.is_dir():
            check_plain(path)
        if not (path / CONFIG).is_file():
            raise ValueError(f"{path} holds no run: there is no {CONFIG} in it. `harmonium list` shows the runs.")
        settings = read_toml(path / CONFIG)
        if "experiment" in settings:
            raise ValueError(f"{path} holds an experiment, not a run of one model: resume and report take it.")
        return cls(path, relocated(resolve(settings), data_dir))

    def extend(self, epochs: int) -> None:
        """Let the run go on to a later epoch than it was made for.

        At a constant rate it ends with the same bits as a run that was made for so many. A schedule that has come to
        its end begins anew, from the rate of the start, over the epochs that are added (`[training] restarts`).
        """
        section = self.config.training
        if epochs <= section.epochs:
            raise ValueError(
                f"{self.folder} is made for {section.epochs} epochs, of which {self.n_epochs} are done. Give more with "
                f"--epochs, or leave it out."
            )
        changed: dict[str, Any] = {"epochs": epochs}
        if section.schedule != "constant":
            changed["restarts"] = [*section.restarts, section.epochs]
        self.config = self.config.model_copy(update={"training": section.model_copy(update=changed)})
        self.kind.task(self.config, self.prepared, self.untrained(), generator=torch.Generator())  # raises if it cannot
        workers.done_by_first(lambda: write_atomic(self.folder / CONFIG, self.config.to_toml().encode()))

    def check_unchanged(self) -> None:
        """Raise if another process has made another run in this folder since it was opened."""
        if Run.open(self.folder, data_dir=self.config.data.data_dir).config != self.config:
            raise ValueError(f"{self.folder} holds another run by now. Choose another folder with --output.")

    def _repr_html_(self) -> str:
        """Return what it is and how it did, for notebooks."""
        line = self.listed()
        rows = {"data": line.data, "model": f"{line.model}, {line.size}", "epochs": f"{line.n_epochs}/{line.epochs}"}
        return html_table(rows | ({"score": line.score} if line.score else {}), str(self.folder))

    @property
    def kind(self) -> AnyKind:
        """The kind of its model."""
        return KINDS[self.config.model.kind]

    @cached_property
    def prepared(self) -> Prepared:
        """The data as the model sees them, and the way back."""
        kept = self.kept()
        return prepare(self.config, None if kept is None else kept[0]["sha256"])

    @cached_property
    def outline(self) -> Prepared:
        """What the run keeps of its data: all but most of their rows. Before it is trained, the data themselves."""
        kept = self.kept()
        return self.prepared if kept is None else recalled(*kept)

    def keep(self) -> None:
        """Write what the run must keep of its data, once."""
        if workers.is_first() and self.kept() is None:
            n_rows = {split: len(x) for split, x in self.prepared.data.splits.items()}
            self.write_kept(*as_kept(self.kind.outline(self.config, self.prepared), n_rows))

    def data(self) -> Data:
        """Return the data as the model sees them, each sample in its own shape; `note` says how they were made."""
        return self.prepared.data

    def rows(self, split: str) -> Tensor | None:
        """Return the samples of a split in the shape and type that the model takes, or None without that split."""
        return self.opened(self.untrained()).rows(split)

    def restored(self, x: Tensor) -> Tensor:
        """Return samples of the model in the shape and on the scale of the data."""
        return self.outline.restored(x)

    def untrained(self) -> nn.Module:
        """Return the model before the first update."""
        return self._built(self.prepared)

    def _built(self, prepared: Prepared) -> nn.Module:
        generator = torch.Generator().manual_seed(self.config.run.seed)
        return build_model(self.config, prepared.data, generator=generator)

    def model(self) -> nn.Module:
        """Return the model with the parameters of `model.safetensors`, ready to be used."""
        try:
            parameters = self.parameters(self.config.run.own_device)
            model = self._built(self.outline)
            model.load_state_dict(parameters)
        except RuntimeError as error:
            path = self.folder / MODEL
            raise ValueError(f"{path} does not hold the parameters of {self.config.model.kind}: {error}") from error
        return model.eval()

    def trained(self, *, rows: bool = True) -> Trained:
        """Return the trained model beside its data, ready to be sampled, scored and reported; without their rows where
        these are not needed."""
        return self.opened(self.model(), rows=rows)

    def opened(self, model: nn.Module, *, rows: bool = True) -> Trained:
        """Return a model of this run beside its data."""
        prepared = self.prepared if rows else self.outline
        config, kind = self.config, self.kind
        return Trained(
            config,
            prepared,
            model,
            kind.shape(model, prepared.data),
            kind.sampler(config),
            partial(kind.start, config, prepared),
            kind.origin(config),
            self.metrics(),
            self.evaluation(),
        )

    def listed(self) -> Listed:
        """Return its line in the list of runs."""
        config, scores = self.config, self.evaluation()
        score = "" if scores is None else self.kind.headline(scores)
        size = self.kind.size(config)
        return Listed(config.data.name, config.model.kind, size, self.n_epochs, config.training.epochs, score)

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or the patience of the run has ended."""
        done = self.n_epochs >= self.config.training.epochs or self.stopped_early
        return done and (self.folder / MODEL).is_file()

    @property
    def stopped_early(self) -> bool:
        """Whether validation data ended it before its last epoch."""
        patience = self.config.training.patience
        records = self.metrics() if patience else []
        return bool(records and records[-1]["epoch"] - records[-1]["best_epoch"] >= patience)


def settled(config: Config) -> Config:
    """Return the configuration with what this machine decides: the number of threads, and paths from the root.

    >>> from harmonium.runs import resolve
    >>> settled(resolve({"data": {"name": "ising"}, "run": {"threads": 2}})).run.threads
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


def relocated(config: Config, data_dir: str | Path | None) -> Config:
    """Return the configuration with its data looked for in another folder; a file that is gone, by its name there."""
    if data_dir is None:
        return config
    folder, changed = Path(data_dir).expanduser().resolve(), {}
    moved = folder / Path(config.data.name).name
    if config.data.name not in DATASETS and not Path(config.data.name).exists() and moved.exists():
        changed["name"] = str(moved)
    return config.model_copy(update={"data": config.data.model_copy(update={"data_dir": str(folder), **changed})})


def next_folder(root: Path, config: Config) -> Path:
    """Return the next free `<root>/<data>-<model>-<n>`."""
    stem, last = _numbered(root, config)
    return root / f"{stem}-{last + 1}"


def last_folder(root: Path, config: Config) -> Path | None:
    """Return the newest `<root>/<data>-<model>-<n>` that is there."""
    stem, last = _numbered(root, config)
    return root / f"{stem}-{last}" if last else None


def _numbered(root: Path, config: Config) -> tuple[str, int]:
    """Return how folders of such runs are called, and the highest number that is taken."""
    stem = re.sub(r"[^\w.-]+", "-", f"{Path(config.data.name).stem}-{config.model.kind}")
    taken = [
        int(path.name.removeprefix(f"{stem}-"))
        for path in root.glob(f"{stem}-*")
        if path.name[len(stem) + 1 :].isdigit()
    ]
    return stem, max(taken, default=0)
