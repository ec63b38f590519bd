"""What a folder holds: a run of one model, or an experiment."""

from __future__ import annotations

from pathlib import Path

from harmonium.experiments import Experiment, open_experiment
from harmonium.runs import Run
from harmonium.runs.folder import CONFIG


def open_any(folder: Path) -> Run | Experiment:
    """Open the run or the experiment in a folder."""
    found = open_experiment(folder) if (folder / CONFIG).is_file() else None
    return Run.open(folder) if found is None else found
