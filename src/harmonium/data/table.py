"""Tables: CSV and Parquet, their columns' types, and the encoding that a model sees."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from harmonium.data.base import COLUMN_TYPES, Column, Value
from harmonium.data.extras import require

Table = dict[str, list[Value | None]]
"""The cells of a table by column; None is missing."""

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
MAX_INTEGER_LEVELS = 10
MAX_TEXT_LEVELS = 100


def parse_cells(cells: Sequence[str]) -> list[Value | None]:
    """Return a column of text as integers if all its cells are, else as numbers if all are, else as text."""
    stripped = [cell.strip() for cell in cells]
    for kind in (int, float):
        try:
            return [None if cell.lower() in MISSING else kind(cell) for cell in stripped]
        except ValueError:
            continue
    return [None if cell.lower() in MISSING else cell for cell in stripped]


def is_number(cell: str) -> bool:
    """Say whether the text is a number or a missing value."""
    return cell.strip().lower() in MISSING or isinstance(parse_cells([cell])[0], int | float)


def read_csv(path: Path) -> Table:
    """Read a CSV file. The first row names the columns, unless all its cells are numbers: then they are x0, x1 …"""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            rows = [(reader.line_num, row) for row in reader if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a CSV file in UTF-8: {error}.") from error
    if not rows:
        raise ValueError(f"{path} is empty.")
    width = len(rows[0][1])
    for line, row in rows:
        if len(row) != width:
            raise ValueError(
                f"{path}, line {line}: {len(row)} cells, but the first row has {width}. Repair or drop the line."
            )
    if all(is_number(cell) for cell in rows[0][1]):
        names = [f"x{i}" for i in range(width)]
    else:
        names = [name.strip() for name in rows.pop(0)[1]]
    if len(set(names)) < width:
        raise ValueError(f"{path}: the names of the columns must differ. Got {names}.")
    if not rows:
        raise ValueError(f"{path} has names of columns but no rows.")
    return {name: parse_cells([row[i] for _, row in rows]) for i, name in enumerate(names)}


def read_parquet(path: Path) -> Table:
    """Read a Parquet file of numbers, booleans and text (pyarrow)."""
    parquet = require("pyarrow.parquet", "tables", "reading Parquet files")
    try:
        stored = parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is not a readable Parquet file: {error}.") from error
    table: Table = {name: stored.column(name).to_pylist() for name in stored.column_names}
    for name, cells in table.items():
        table[name] = [None if isinstance(cell, float) and math.isnan(cell) else cell for cell in cells]
        odd = next((cell for cell in cells if cell is not None and not isinstance(cell, str | int | float)), None)
        if odd is not None:
            raise ValueError(f"{path}: column {name!r} holds {type(odd).__name__} values. Make them numbers or text.")
    return table


def read_columns(path: str | os.PathLike[str]) -> Table:
    """Read the cells of a `.csv` or `.parquet` file. Empty cells, NA, NaN, null, None and ? are missing."""
    path = Path(path)
    return read_parquet(path) if path.suffix.lower() in (".parquet", ".pq") else read_csv(path)


def infer_type(name: str, cells: Sequence[Value]) -> str:
    """Return the type of a column from its cells that are not missing.

    Two distinct values: binary. Text: categorical (more than 100 distinct is an error: names and identifiers are
    dropped by hand). Integers with 3 to 10 distinct values, each in two rows or more on average: categorical. All else:
    real.

    >>> infer_type("age", [31, 47, 52]), infer_type("stars", [1, 2, 3, 3, 2, 1]), infer_type("answer", ["no", "yes"])
    ('real', 'categorical', 'binary')
    """
    distinct = set(cells)
    if len(distinct) == 2:
        return "binary"
    if any(isinstance(cell, str) for cell in distinct):
        if len(distinct) > MAX_TEXT_LEVELS:
            raise ValueError(
                f"column {name!r} has {len(distinct)} distinct texts, too many to guess that it is categorical. "
                f'Leave it out with types={{{name!r}: "drop"}}, or keep it with types={{{name!r}: "categorical"}}.'
            )
        return "categorical"
    whole = all(float(cell).is_integer() for cell in distinct)
    few = 3 <= len(distinct) <= MAX_INTEGER_LEVELS and 2 * len(distinct) <= len(cells)
    return "categorical" if whole and few else "real"


def infer_columns(
    table: Table, types: Mapping[str, str] | None = None, *, rows: Sequence[int] | None = None
) -> tuple[Column, ...]:
    """Return the columns of a table by the rule of `infer_type`, where `types` does not give the type (or `"drop"`).

    Levels come from all rows; mean and standard deviation of real columns from `rows` only (the training split).
    """
    types = dict(types or {})
    unknown = [name for name in types if name not in table]
    if unknown:
        raise ValueError(f"`types` names columns that are not there: {unknown}. The columns are {list(table)}.")
    columns = []
    for name, cells in table.items():
        given = types.get(name)
        if given == "drop":
            continue
        if given is not None and given not in COLUMN_TYPES:
            raise ValueError(
                f"the type of column {name!r} must be one of {', '.join(COLUMN_TYPES)} or drop. Got {given!r}."
            )
        present = [cell for cell in cells if cell is not None]
        if not present:
            raise ValueError(f'column {name!r} has only missing values. Leave it out with types={{{name!r}: "drop"}}.')
        kind = given or infer_type(name, present)
        if kind == "real":
            columns.append(fit_real(name, cells, rows))
            continue
        levels = sorted(set(present), key=lambda cell: (isinstance(cell, str), cell))
        if kind == "binary" and len(levels) > 2:
            raise ValueError(f"column {name!r} cannot be binary: it has {len(levels)} distinct values, {levels[:5]} …")
        columns.append(Column(name, kind, tuple(levels)))
    if not columns:
        raise ValueError("all columns are dropped: nothing is left to model.")
    return tuple(columns)


def fit_real(name: str, cells: Sequence[Value | None], rows: Sequence[int] | None) -> Column:
    """Return a real column with the moments of the given rows; a constant one gets std 1."""
    chosen = cells if rows is None else [cells[row] for row in rows]
    text = next((cell for cell in cells if isinstance(cell, str)), None)
    if text is not None:
        raise ValueError(
            f"column {name!r} cannot be real: it holds the text {text!r}. Repair it, or choose categorical."
        )
    if any(math.isinf(float(cell)) for cell in cells if cell is not None):
        raise ValueError(f"column {name!r} holds infinite values. Replace them, or leave the cells empty.")
    x = torch.tensor([float(cell) for cell in chosen if cell is not None], dtype=torch.float64)
    mean = float(x.mean()) if len(x) else 0.0
    std = float(x.std(correction=0)) if len(x) else 0.0
    return Column(name, "real", (), mean, std if std > 1e-12 * max(1.0, abs(mean)) else 1.0)


def encode(table: Mapping[str, Sequence[Value | None]], columns: Sequence[Column]) -> Tensor:
    """Return float32 `(n, Σ width)`: 0/1, a one-hot block, or `(x - mean)/std` for each column; missing cells are NaN,
    all along their block."""
    blocks = []
    for column in columns:
        if column.name not in table:
            raise ValueError(f"the table has no column {column.name!r}. Its columns are {list(table)}.")
        cells = table[column.name]
        block = torch.full((len(cells), column.width), math.nan)
        present = torch.tensor([cell is not None for cell in cells])
        values = [cell for cell in cells if cell is not None]
        if column.type == "real":
            numbers = torch.tensor([float(value) for value in values], dtype=torch.float64)
            block[present, 0] = ((numbers - column.mean) / column.std).float()
        else:
            index = {level: i for i, level in enumerate(column.levels)}
            unseen = next((value for value in values if value not in index), None)
            if unseen is not None:
                raise ValueError(
                    f"column {column.name!r} holds {unseen!r}, which is not one of its levels {column.levels}."
                )
            codes = torch.tensor([index[value] for value in values], dtype=torch.int64)
            hot = torch.nn.functional.one_hot(codes, column.width) if column.type == "categorical" else codes[:, None]
            block[present] = hot.float()
        blocks.append(block)
    return torch.cat(blocks, 1)


def decode(x: Tensor, columns: Sequence[Column]) -> Table:
    """Return the cells that `x` encodes: the nearer level of a binary value, the largest of a one-hot block, or
    `x · std + mean`; NaN is missing. So `decode(encode(table, columns), columns)` is the table."""
    width = sum(column.width for column in columns)
    if x.ndim != 2 or x.shape[1] != width:
        raise ValueError(f"`x` must have shape (n, {width}) to match the columns. Got {tuple(x.shape)}.")
    table: Table = {}
    for column, block in zip(columns, x.double().split([column.width for column in columns], 1), strict=True):
        missing = block.isnan().any(1).tolist()
        cells: list[Value]
        if column.type == "real":
            cells = [value * column.std + column.mean for value in block[:, 0].tolist()]
        else:
            codes = block.argmax(1) if column.type == "categorical" else (block[:, 0] > 0.5).long()
            cells = [column.levels[min(code, len(column.levels) - 1)] for code in codes.tolist()]
        table[column.name] = [None if gone else cell for gone, cell in zip(missing, cells, strict=True)]
    return table


def read_table(
    path: str | os.PathLike[str], types: Mapping[str, str] | None = None, *, rows: Sequence[int] | None = None
) -> tuple[Tensor, tuple[Column, ...]]:
    """Read a `.csv` or `.parquet` table: the encoded float32 `(n, d)` with NaN for missing cells, and its columns.

    Types are inferred (`infer_type`) or given, `types={"age": "real", "id": "drop"}`; real columns are standardized
    with the moments of `rows`, or of all rows.
    """
    table = read_columns(path)
    columns = infer_columns(table, types, rows=rows)
    return encode(table, columns), columns
