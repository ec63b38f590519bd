"""What `reproduce table1 --network paper` does: the learned stack and its controls, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harmonium.cli.finish import train_experiment, write_report
from harmonium.cli.show import Show
from harmonium.experiments.table1.filter_sources import SOURCES
from harmonium.experiments.table1.stack_recipes import STACKS, stack_of
from harmonium.experiments.table1.stack_table import read_stacks, table_of_stacks
from harmonium.runs.atomic import write_atomic


@dataclass(frozen=True)
class StackOptions:
    """What was asked for on the command line, None where nothing was."""

    data: Sequence[str] | None
    levels: Sequence[int] | None
    seeds: Sequence[int]
    reading: Sequence[str] | None
    layers: Sequence[str] | None
    controls: bool
    k: float | None
    activation: str
    rate: float | None
    images: int
    size: int
    per_class: int
    data_dir: str | None

    def cells(self, out: Path) -> list[Any]:
        """Return the cells in the order in which they are done: a seed of everything first."""
        return [
            stack_of(
                name,
                out,
                rate=self.rate,
                levels=n,
                k=self.k,
                activation=self.activation,
                filters=filters,
                seed=seed,
                images=self.images,
                size=self.size,
                per_class=self.per_class,
                data_dir=self.data_dir,
            )
            for seed in self.seeds
            for name in self.data or list(STACKS)
            for n in self.levels or [255, 1]
            for filters in (SOURCES if self.controls else SOURCES[:1])
        ]


def reproduce_stacks(options: StackOptions, out: Path, show: Show) -> None:
    """Train and score every cell that is not there yet, and write the table of all that are."""
    loaded: dict[tuple[str, int], Any] = {}
    for cell in options.cells(out):
        key = cell.data_name, cell.seed if cell.data_name not in STACKS else 0
        cell.data = loaded.setdefault(key, loaded.get(key) or cell.data)  # read once for all that share it
        train_experiment(cell, show)
        before = cell.evaluation()
        for how in options.reading or ["mean"]:
            for record in cell.score(reading=how, layers=options.layers or ("1", "2", "1+2"), say=show.line).values():
                show.event("cell", **{name: value for name, value in record.items() if name != "wrong"})
        if cell.evaluation() != before:
            write_report(cell, show)
    table = table_of_stacks(read_stacks(out))
    write_atomic(out / "table1.md", table.encode())
    show.line(table)
