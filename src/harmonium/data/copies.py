"""Columns that say what another says in other words: "alive" beside "survived", "class" beside "pclass"."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from harmonium.data.column import LISTED, Cells, Column, Value

CHANCE = 20.0
"""How improbable, in nats, it must be that a column agrees with another by chance."""


def with_copies(columns: Sequence[Column], table: Mapping[str, Cells], told: Collection[str] = ()) -> list[Column]:
    """Return the columns, those with levels that only rename the levels of an earlier one as `copy` of it.

    They are missing in the same rows, and each level of one goes with one level of the other. A column with the same
    shares that had nothing to do with the other would agree with it once in `n!/Π n_level!` cases; at least e²⁰ are
    asked for. Columns whose type was told stay what they were told to be.
    """
    first: dict[tuple[int, ...], Column] = {}
    found = {column.name: column for column in columns}
    for column in sorted(columns, key=lambda column: column.place):
        if column.type not in LISTED:
            continue
        cells = table[column.name]
        source = first.setdefault(_pattern(cells), column)
        if source is column or column.name in told or _log_arrangements(cells) < CHANCE:
            continue
        named = dict(zip(table[source.name], cells, strict=True))
        note = f"{source.name!r} in other words: left out, and put back into samples"
        levels = tuple(value for level in source.levels if (value := named[level]) is not None)
        found[column.name] = replace(column, type="copy", levels=levels, of=source.name, note=note)
    return [found[column.name] for column in columns]


def _pattern(cells: Cells) -> tuple[int, ...]:
    """Return the cells as numbers, levels counted as they first come: the same for columns that rename each other.

    >>> _pattern(["no", "yes", None, "no"]), _pattern([1, 0, None, 1])
    ((1, 2, 0, 1), (1, 2, 0, 1))
    """
    numbers: dict[Value | None, int] = {None: 0}
    return tuple(numbers.setdefault(cell, len(numbers)) for cell in cells)


def _log_arrangements(cells: Cells) -> float:
    """Return `log n!/Π n_level!`, in how many orders the known cells could stand."""
    counts = Counter(cell for cell in cells if cell is not None).values()
    return math.lgamma(sum(counts) + 1) - sum(math.lgamma(count + 1) for count in counts)


def renamed(copy: Column, source: Column) -> tuple[dict[str, Value], dict[str, Value]]:
    """Return the level of the copy for each level of its source, by its text, and the other way around."""
    pairs = list(zip(source.levels, copy.levels, strict=True))
    return {str(level): value for level, value in pairs}, {str(value): level for level, value in pairs}


def agreed(
    table: Mapping[str, Cells], columns: Sequence[Column], *, on_trouble: Callable[[str], None] | None = None
) -> dict[str, Cells]:
    """Return a table whose columns and their copies are filled in from each other.

    Where a copy contradicts its source the source stands, which is an error, or told to `on_trouble`.

    >>> columns = Column("a", "binary", (0, 1)), Column("b", "copy", ("no", "yes"), of="a")
    >>> agreed({"a": [0, None], "b": [None, "yes"]}, columns)
    {'a': [0, 1], 'b': ['no', 'yes']}
    """
    result = dict(table)
    by_name = {column.name: column for column in columns}
    copies = [column for column in columns if column.type == "copy" and column.name in table]
    for copy in copies:
        down, up = renamed(copy, by_name[copy.of])
        cells = result[copy.name]
        known = result.get(copy.of, [None] * len(cells))
        both = [old if old is not None else up.get(str(new)) for old, new in zip(known, cells, strict=True)]
        odd = [
            i
            for i, (source, own) in enumerate(zip(both, cells, strict=True))
            if source is not None and own is not None and str(source) in down and str(down[str(source)]) != str(own)
        ]
        if odd:
            text = (
                f"column {copy.name!r} holds {cells[odd[0]]!r} where {copy.of!r} is {both[odd[0]]!r}, which goes with "
                f"{down[str(both[odd[0]])]!r} in all rows learned from ({len(odd)} rows)"
            )
            if on_trouble is None:
                raise ValueError(f"{text}. Repair one of them, or leave its cell empty.")
            on_trouble(f"{text}: {copy.of!r} is believed.")
        result[copy.of] = both
    for copy in copies:  # once their sources know all that their copies know
        down, _ = renamed(copy, by_name[copy.of])
        result[copy.name] = [
            own if own is not None else down.get(str(source))
            for own, source in zip(result[copy.name], result[copy.of], strict=True)
        ]
    return result
