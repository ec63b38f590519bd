"""Table 1 by the paper's network: every number beside its controls, with their paired differences."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harmonium.evaluation.classify.error_difference import error_difference
from harmonium.experiments.base import read_settings
from harmonium.experiments.table1.cell import PAPER
from harmonium.experiments.table1.filter_sources import SOURCES
from harmonium.experiments.table1.stack_cell import StackCell
from harmonium.runs.folder import EVALUATION, RunFolder

COLUMNS = (
    *("data", "training images", "N", "read as", "layers", "filters", "test error", "seeds"),
    *("above learned", "above layer 1", "paper", "CPU min to read and fit"),
)

Record = dict[str, Any]
Key = tuple[str, int, str, str, int, str]


def read_stacks(folder: Path) -> list[Record]:
    """Return the records of all finished cells of stacks in a folder."""
    paths = sorted(path.parent for path in folder.glob(f"*/{EVALUATION}"))
    mine = [path for path in paths if read_settings(path)["experiment"]["name"] == StackCell.name]
    return [record for path in mine for record in (RunFolder(path).evaluation() or {}).values()]


def table_of_stacks(records: Iterable[Record]) -> str:
    """Return the records as a Markdown table: one row a data set, N, reading, layers and source of the filters.

    `± ` behind an error is its spread over the seeds. `above learned` is by how much a control errs more often than the
    learned filters on the same test images, with the standard error of that difference over the images (over the seeds
    that both have); `above layer 1` the same of these layers against the lowest layer alone.
    """
    groups: dict[Key, list[Record]] = {}
    for record in records:
        groups.setdefault(_key(record), []).append(record)
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for key in sorted(groups, key=_order):
        name, levels, reading, layers, n_train, filters = key
        cells = sorted(groups[key], key=lambda cell: cell["seed"])
        errors = [100 * cell["error"] for cell in cells]
        spread = f" ± {statistics.stdev(errors):.2f}" if len(errors) > 1 else ""
        learned = groups.get((*key[:5], "learned")) if filters != "learned" else None
        lowest = groups.get((*key[:3], "1", n_train, filters)) if layers != "1" else None
        paper = PAPER.get(name, {}).get(levels) if filters == "learned" else None
        minutes = statistics.mean(cell["cpu_seconds"] for cell in cells) / 60
        row = [
            *(name, f"{n_train:,}", str(levels), reading, layers, filters),
            *(f"{statistics.mean(errors):.2f} %{spread}", ", ".join(str(cell["seed"]) for cell in cells)),
            *(_difference(cells, learned), _difference(cells, lowest)),
            *("" if paper is None else f"{paper:.2f} %", f"{minutes:.1f}"),
        ]
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _key(record: Record) -> Key:
    names = ("data", "levels", "reading", "layers", "n_train", "filters")
    data, levels, reading, layers, n_train, filters = (record[name] for name in names)
    return data, levels, reading, layers, n_train, filters


def _order(group: Key) -> tuple[Any, ...]:
    names = list(PAPER)
    name, levels, reading, layers, n_train, filters = group
    place = names.index(name) if name in names else len(names)
    return place, name, n_train, -levels, reading, layers, SOURCES.index(filters)


def _difference(cells: list[Record], others: list[Record] | None) -> str:
    """Return `d ± its error` in points, over the seeds that both have."""
    both = {cell["seed"] for cell in cells} & {cell["seed"] for cell in others or []}
    if not both:
        return ""
    wrong = [[cell["wrong"] for cell in group if cell["seed"] in both] for group in (cells, others or [])]
    value, error = error_difference(wrong[0], wrong[1], cells[0]["n_test"])
    return f"{100 * value:+.2f} ± {100 * error:.2f}"
