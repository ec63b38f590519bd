"""What a folder holds: a run of one model, or an experiment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harmonium.experiments import Experiment, open_experiment
from harmonium.runs import Run
from harmonium.runs.folder import CONFIG


def open_any(folder: Path, data_dir: str | None = None) -> Run | Experiment:
    """Open the run or the experiment in a folder; `data_dir` is where its data are now, if they have moved."""
    found = open_experiment(folder) if (folder / CONFIG).is_file() else None
    if found is None:
        return Run.open(folder, data_dir=data_dir)
    return found if data_dir is None else replace(found, data_dir=data_dir)
