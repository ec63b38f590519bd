"""Published experiments, each in the folder of a run: the same files, the same exact resume, the same report."""

from pathlib import Path

from harmonium.experiments.base import Experiment, read_settings
from harmonium.experiments.faces.experiment import Faces
from harmonium.experiments.table1.cell import Cell
from harmonium.experiments.table1.stack_cell import StackCell

EXPERIMENTS: dict[str, type[Experiment]] = {experiment.name: experiment for experiment in (Cell, Faces, StackCell)}
"""The experiments by the name in their settings."""


def open_experiment(folder: str | Path) -> Experiment | None:
    """Return the experiment in a folder, or None if the folder holds something else."""
    path = Path(folder)
    name = read_settings(path).get("experiment", {}).get("name")
    return EXPERIMENTS[name].reopen(path) if name in EXPERIMENTS else None


__all__ = ["EXPERIMENTS", "Cell", "Experiment", "Faces", "StackCell", "open_experiment"]
