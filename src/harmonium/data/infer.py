"""What the columns of a table are: their types and scales, from their cells."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from harmonium.data.column import COLUMN_TYPES, EPOCH, KNOTS, LEFT_OUT, LISTED, NUMERIC, Cells, Column, Value, raised
from harmonium.data.copies import with_copies

MAX_ORDINAL, MAX_LEVELS = 12, 100
"""The most distinct whole numbers that are taken for an order of levels, and texts for categories."""

MAX_WHOLE = 10**15
"""Whole numbers beyond it are names: arithmetic would lose their last digits."""

SENTINELS = (-999, -9999, -99999)
"""Numbers that mean a missing value where all others are at least 0."""

GAIN = 3.0
"""How many nats of all training cells a bent scale must gain over a straight one."""

_NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_WITH_UNIT = rf"([^\w\s]?)\s?{_NUMBER}\s?([^\w\s]|[a-zA-Zµ°/]{{1,4}})?"
_POWERS = [i / 10 for i in range(21)]


def infer_columns(
    table: Mapping[str, Cells], types: Mapping[str, str] | None = None, *, rows: Sequence[int] | None = None
) -> tuple[Column, ...]:
    """Return the columns of a table, with the types of `types` where it names them, else as `infer_type` says.

    Types, levels and ranges come from all rows; scales, means and standard deviations from `rows` only (the training
    split). Numbers come first, whatever their `place` in the file. Columns that are not modeled are there too, as
    `constant`, `identifier`, `empty`, `skip` or `copy` (`with_copies`).
    """
    types = dict(types or {})
    unknown = [name for name in types if name not in table]
    if unknown:
        raise ValueError(f"there are no columns {unknown}. The columns are {list(table)}.")
    columns = [
        replace(fit_column(name, cells, types.get(name), rows), place=place)
        for place, (name, cells) in enumerate(table.items())
    ]
    if len(next(iter(table.values()))) == 1 and not types:
        raise ValueError("the table has one row: there is nothing to learn how values differ from. Give more rows.")
    if all(column.type in LEFT_OUT for column in columns):
        raise ValueError("all columns are left out: nothing is left to model.")
    columns = with_copies(columns, table, types)
    return tuple(sorted(columns, key=lambda column: (not column.is_numeric, column.place)))


def fit_column(name: str, cells: Cells, given: str | None = None, rows: Sequence[int] | None = None) -> Column:
    """Return one column, of the given type or of the one that its cells suggest."""
    if given is not None and given not in COLUMN_TYPES:
        raise ValueError(f"the type of column {name!r} must be one of {', '.join(COLUMN_TYPES)}. Got {given!r}.")
    if given == "copy":
        raise ValueError(
            f"column {name!r} cannot be told to be a copy: copies are found. Choose its own type, or skip."
        )
    if given in LEFT_OUT:
        return Column(name, given, note="as told")
    cells, note = without_sentinels(cells)
    present = [cell for cell in cells if cell is not None]
    if not present:
        return Column(name, "empty", note="only missing values: left out")
    if any(isinstance(cell, float) and math.isinf(cell) for cell in present):
        raise ValueError(f"column {name!r} holds infinite values. Replace them, or leave the cells empty.")
    kind, why = (given, "as told") if given is not None else infer_type(name, present)
    note = "; ".join(filter(None, [why, note]))
    if kind in NUMERIC:
        chosen = cells if rows is None else [cells[row] for row in rows]
        return fit_numbers(name, kind, present, [cell for cell in chosen if cell is not None], note)
    levels = tuple(sorted(set(present), key=lambda cell: (isinstance(cell, str), cell)))
    if kind == "binary" and len(levels) > 2:
        raise ValueError(f"column {name!r} cannot be binary: it has {len(levels)} distinct values, {levels[:5]} …")
    if kind in LISTED or kind == "constant":
        return Column(name, kind, levels, note=note)
    return Column(name, kind, note=note)


def infer_type(name: str, cells: Sequence[Value]) -> tuple[str, str]:
    """Return the type of a column from its cells that are not missing, and why in words.

    >>> infer_type("age", [31.5, 47, 52])[0], infer_type("stars", [1, 2, 3, 3, 2, 1])[0]
    ('positive', 'ordinal')
    """
    distinct = set(cells)
    n, n_distinct = len(cells), len(distinct)
    if n_distinct == 1:
        return "constant", f"always {next(iter(distinct))}: left out, and put back into samples"
    if n_distinct == 2:
        return "binary", ""
    if any(isinstance(cell, str) for cell in distinct):
        return infer_text(name, [str(cell) for cell in cells], n_distinct)
    if any(isinstance(cell, datetime.datetime) for cell in distinct):
        return "date", "in days"
    if any(isinstance(cell, int) and abs(cell) > MAX_WHOLE for cell in distinct) and 2 * n_distinct > n:
        return "identifier", "whole numbers of more than 15 digits: left out"
    numbers = [float(cell) for cell in distinct]  # type: ignore[arg-type]
    whole = all(number.is_integer() for number in numbers)
    if whole and n_distinct == n > 20 and (_is_name_of_id(name) or _is_numbering(numbers)):
        return "identifier", "a number for each row: left out"
    if whole and n_distinct <= MAX_ORDINAL and 2 * n_distinct <= n:
        return "ordinal", ""
    if whole and min(numbers) >= 0:
        return "count", ""
    return ("positive", "") if min(numbers) >= 0 else ("real", "")


def infer_text(name: str, cells: Sequence[str], n_distinct: int) -> tuple[str, str]:
    """Return the type of a column of text: categories, identifiers (left out), or free text, which is an error."""
    n = len(cells)
    others = [cell for cell in cells if not re.fullmatch(_NUMBER, cell.replace(",", "."))]
    if n_distinct > 20 and len(others) < n / 2:
        raise ValueError(
            f"column {name!r} holds numbers and, in {len(others)} of {n} cells, other text, such as {others[0]!r}. "
            f"Leave cells empty that are missing; or choose --columns {name}=categorical, or {name}=skip."
        )
    units = {(m[1], m[4]) if (m := re.fullmatch(_WITH_UNIT, cell)) else None for cell in cells}
    if n_distinct > 20 and len(units) == 1 and None not in units:
        raise ValueError(
            f"column {name!r} holds numbers with a sign or a unit, such as {cells[0]!r}. Write the numbers alone, or "
            f"leave the column out with --columns {name}=skip."
        )
    spaced = sum(" " in cell for cell in cells) > n / 2
    if n_distinct > 20 and n_distinct > 0.9 * n and not spaced:
        return "identifier", f"{n_distinct} distinct texts in {n} rows: left out"
    if n_distinct > MAX_LEVELS or (n_distinct > 20 and n_distinct > n / 2):
        raise ValueError(
            f"column {name!r} holds text: {n_distinct} distinct texts in {n} rows, which no unit stands for. Leave it "
            f"out with --columns {name}=skip (in Python types={{{name!r}: 'skip'}}), or keep it as it is with "
            f"{name}=categorical."
        )
    return "categorical", ""


def _is_name_of_id(name: str) -> bool:
    return re.search(r"(^|[^a-z])(id|key|index|nr|no|number)$|^unnamed|^id", name.lower()) is not None


def _is_numbering(numbers: Sequence[float]) -> bool:
    return max(numbers) - min(numbers) == len(numbers) - 1


def without_sentinels(cells: Cells) -> tuple[Cells, str]:
    """Return the cells with -999 and the like as missing, where all other numbers are at least 0."""
    numbers = [cell for cell in cells if isinstance(cell, int | float) and not isinstance(cell, bool)]
    found = [value for value in SENTINELS if numbers.count(value) > 1]
    if not found or any(number < 0 for number in numbers if number not in found):
        return cells, ""
    return [None if cell in found else cell for cell in cells], f"{', '.join(map(str, found))} read as missing"


def as_numbers(name: str, cells: Sequence[Value], kind: str) -> Tensor:
    """Return cells as float64 numbers, dates as days since 1970; text and infinities are errors."""
    text = next((cell for cell in cells if isinstance(cell, str)), None)
    if text is not None:
        raise ValueError(
            f"column {name!r} cannot be {kind}: it holds the text {text!r}. Repair it, or choose categorical."
        )
    try:
        numbers = [
            (cell - EPOCH).total_seconds() / 86400 if isinstance(cell, datetime.datetime) else float(cell)
            for cell in cells
        ]
    except OverflowError as error:
        raise ValueError(f"column {name!r} holds a whole number of more than 308 digits. Repair it.") from error
    x = torch.tensor(numbers, dtype=torch.float64)
    if bool(x.isinf().any()):
        raise ValueError(f"column {name!r} holds infinite values. Replace them, or leave the cells empty.")
    return x


def fit_numbers(name: str, kind: str, present: Sequence[Value], chosen: Sequence[Value], note: str) -> Column:
    """Return a column of numbers with the scale, mean and std of the training cells, and the rounding of all."""
    every = as_numbers(name, present, kind)
    x = as_numbers(name, chosen, kind) if len(chosen) > 1 else every
    low, high = float(every.min()), float(every.max())
    if kind in ("positive", "count") and low < 0:
        raise ValueError(f"column {name!r} cannot be {kind}: it holds {low:g}. Choose real.")
    decimals = decimals_of(every)
    step = 1 if decimals is None else step_of(every * 10.0**decimals)
    center, unit = float(x.mean()), float(x.std(correction=0))
    straight = Column(
        name,
        kind,
        center=center,
        decimals=decimals,
        step=step,
        low=low,
        high=high,
        quantiles=quantiles_of(x),
        note=note,
    )
    if not unit > 1e-12 * max(1.0, abs(center)):
        return straight
    straight = replace(straight, unit=unit)
    if kind == "date" or len(x) < 10:
        return straight
    if low >= 0 and kind != "real":
        middle = float(x[x > 0].median())
        center, unit, scale = (0.0 if low > 0 else -middle), middle, "power"
    else:
        scale = "signed power"
    u = (x - center) / unit
    power, gain = best_power(u, scale)
    if gain < GAIN:
        return straight
    y = raised(u, scale, power)
    words = f"power {power:g}" if power else "log scale"
    note = "; ".join(filter(None, [note, f"skewed: {words}"]))
    mean, std = float(y.mean()), float(y.std(correction=0))
    return replace(straight, scale=scale, power=power, center=center, unit=unit, mean=mean, std=std, note=note)


def best_power(u: Tensor, scale: str) -> tuple[float, float]:
    """Return the power in 0, 0.1 … 2 that makes u most nearly Gaussian, and the nats that it gains over the power 1.

    The profile likelihood is `-n/2 log Var[T(u)] + Σ log T'(u)` (Box and Cox 1964, eq. 8). Powers below 0 have an
    end beyond which nothing can be drawn: samples of breast cancer then had spreads up to 1.6 times the data's.
    """
    logs = u.clamp_min(1e-9).log() if scale == "power" else u.sign() * u.abs().log1p()

    def nats(power: float) -> float:
        variance = raised(u, scale, power).var(correction=0)
        return float(-len(u) / 2 * variance.log() + (power - 1) * logs.sum())

    best = max(_POWERS, key=nats)
    return best, nats(best) - nats(1.0)


def quantiles_of(x: Tensor) -> tuple[float, ...]:
    """Return the values at the shares `Φ(KNOTS)`, between neighbors in proportion (Hazen's rule: the i-th of n is at
    the share `(i - ½)/n`).

    >>> quantiles_of(torch.tensor([3.0, 1.0, 2.0]))[70]
    2.0
    """
    ordered = x.double().sort().values
    place = (torch.special.ndtr(torch.tensor(KNOTS, dtype=torch.float64)) * len(x) - 0.5).clamp(0, len(x) - 1)
    below = place.long()
    above = (below + 1).clamp_max(len(x) - 1)
    return tuple(ordered[below].lerp(ordered[above], place - below).tolist())


def step_of(x: Tensor) -> int:
    """Return the greatest common divisor of whole numbers, 1 if all are 0.

    >>> step_of(torch.tensor([2700.0, 3450.0, 3725.0]))
    25
    """
    return math.gcd(*map(int, x.round().tolist())) or 1


def decimals_of(x: Tensor) -> int | None:
    """Return to how many decimals all numbers are rounded, None for more than 12.

    >>> decimals_of(torch.tensor([1.5, 2.25, 3.0], dtype=torch.float64))
    2
    """
    for decimals in range(13):
        scaled = x * 10.0**decimals
        if bool((scaled.round() - scaled).abs().le(4e-15 * scaled.abs().clamp_min(1e4)).all()):  # 18 last digits
            return decimals
    return None
