"""Tables: CSV and Parquet files, their columns, and the encoding that a model sees."""

from __future__ import annotations

import datetime
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from harmonium.data.column import EPOCH, Cells, Column, Value
from harmonium.data.copies import agreed, renamed
from harmonium.data.csv_file import Table, read_csv
from harmonium.data.extras import require
from harmonium.data.gate import check_file, check_unpacked
from harmonium.data.infer import as_numbers, infer_columns

CELL = 32
"""About how many bytes a cell of a Parquet file takes once it is read."""


def read_parquet(path: Path) -> Table:
    """Read a Parquet file of numbers, booleans, dates and text (pyarrow), after a look at how large it will be.

    Texts stay in their dictionaries: a long one that is repeated is kept once.
    """
    types = require("pyarrow.types", "tables", "reading Parquet files")
    parquet = require("pyarrow.parquet", "tables", "reading Parquet files")
    packed = check_file(path)
    try:
        with parquet.ParquetFile(path) as file:
            names, schema, footer = file.schema_arrow.names, file.schema_arrow, file.metadata
            if len(set(names)) < len(names):
                raise ValueError(f"{path}: the names of the columns must differ. Got {names}.")
            texts = [field.name for field in schema if types.is_string(field.type) or types.is_large_string(field.type)]
            for field in schema:
                if types.is_nested(field.type) or types.is_binary(field.type):
                    raise ValueError(
                        f"{path}: column {field.name!r} holds {field.type} values. Make them numbers or text."
                    )
            groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
            unpacked = sum(group.total_byte_size for group in groups) + CELL * footer.num_rows * len(names)
            check_unpacked(unpacked, packed, path)
        stored = parquet.read_table(path, read_dictionary=texts)
        return {name: [as_value(path, name, cell) for cell in cells_of(stored.column(name))] for name in names}
    except (OSError, ValueError, TypeError, NotImplementedError, LookupError, ArithmeticError, MemoryError) as error:
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        raise ValueError(f"{path} is not a Parquet file that can be read: {error}.") from error


def cells_of(column: Any) -> Iterator[object]:
    """Yield the cells of a column of Arrow; the same text is the same object."""
    for chunk in column.chunks:
        if hasattr(chunk, "dictionary"):
            levels = chunk.dictionary.to_pylist()
            yield from (None if i is None else levels[i] for i in chunk.indices.to_pylist())
        else:
            yield from chunk.to_pylist()


def as_value(path: Path, name: str, cell: object) -> Value | None:
    """Return a cell of a Parquet file as a value: NaN is missing, a date is the start of its day."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return None
    if isinstance(cell, datetime.datetime):
        return cell.replace(tzinfo=None)
    if isinstance(cell, datetime.date):
        return datetime.datetime(cell.year, cell.month, cell.day)
    if isinstance(cell, str | int | float):
        return cell
    raise ValueError(f"{path}: column {name!r} holds {type(cell).__name__} values. Make them numbers or text.")


def read_columns(path: str | os.PathLike[str]) -> Table:
    """Read the cells of a `.csv` (`.tsv`, `.txt`) or `.parquet` file.

    Separators, decimal commas and encodings are found out. Empty cells, NA, N/A, NaN, null, None, ?, - and the like are
    missing.
    """
    path = Path(path)
    return read_parquet(path) if path.suffix.lower() in (".parquet", ".pq") else read_csv(path)


def encode(
    table: Mapping[str, Cells], columns: Sequence[Column], *, on_unseen: Callable[[str], None] | None = None
) -> Tensor:
    """Return float64 `(n, Σ width)`: for each column a number on its scale, 0/1, or a one-hot block.

    Missing cells are NaN, all along their block, unless a copy of the column has them. A level that was never seen is
    an error, or missing where `on_unseen` is told of it; so is a copy that contradicts its source.
    """
    blocks = []
    copies = {column.name: column for column in columns if column.type == "copy" and column.name in table}
    known = {name: seen(copy, table[name], on_unseen) for name, copy in copies.items()}
    table = agreed({**table, **known}, columns, on_trouble=on_unseen)
    for column in columns:
        if not column.width:
            continue
        if column.name not in table:
            raise ValueError(f"the table has no column {column.name!r}. Its columns are {list(table)}.")
        cells = table[column.name]
        if not column.is_numeric:
            cells = seen(column, cells, on_unseen)
        block = torch.full((len(cells), column.width), math.nan, dtype=torch.float64)
        present = torch.tensor([cell is not None for cell in cells], dtype=torch.bool)
        values = [cell for cell in cells if cell is not None]
        if column.is_numeric:
            block[present, 0] = column.forward(as_numbers(column.name, values, column.type))
        else:
            index = {level: i for i, level in enumerate(column.levels)}
            codes = torch.tensor([index[value] for value in values], dtype=torch.int64)
            hot = codes[:, None] if column.type == "binary" else torch.nn.functional.one_hot(codes, column.width)
            block[present] = hot.double()
        blocks.append(block)
    return torch.cat(blocks, 1)


def seen(column: Column, cells: Cells, on_unseen: Callable[[str], None] | None) -> Cells:
    """Return the cells with levels as the column has them; others are missing, and told of."""
    by_text = {str(level): level for level in column.levels}
    found = [None if cell is None else by_text.get(str(cell)) for cell in cells]
    odd = sorted({str(cell) for cell, level in zip(cells, found, strict=True) if cell is not None and level is None})
    if odd:
        text = f"column {column.name!r} holds {odd[0]!r}, which is not one of its levels {column.levels}"
        if on_unseen is None:
            raise ValueError(f"{text}.")
        on_unseen(f"{text}: taken as missing" + (f" (and {len(odd) - 1} other levels)." if odd[1:] else "."))
    return found


def decode(x: Tensor, columns: Sequence[Column]) -> Table:
    """Return the cells that `x` encodes, in the order of the file: the inverse of `encode`, up to rounding.

    Numbers have the rounding of the data and lie in their range; of a binary value it is the nearer level, of a one-hot
    block the largest; NaN is missing. Constants and copies are put back; identifiers and what else is left out are not
    there.
    """
    kept = [column for column in columns if column.width]
    width = sum(column.width for column in kept)
    if x.ndim != 2 or x.shape[1] != width:
        raise ValueError(f"`x` must have shape (n, {width}) to match the columns. Got {tuple(x.shape)}.")
    blocks = iter(x.double().split([column.width for column in kept], 1))
    table: Table = {}
    for column in columns:
        if column.type == "constant" and column.levels:
            table[column.name] = [column.levels[0]] * len(x)
        if not column.width:
            continue
        block = next(blocks)
        missing = block.isnan().any(1).tolist()
        cells: list[Value]
        if column.is_numeric:
            cells = as_cells(column, block[:, 0].nan_to_num())
        else:
            codes = (block[:, 0] > 0.5).long() if column.type == "binary" else block.argmax(1)
            cells = [column.levels[min(code, len(column.levels) - 1)] for code in codes.tolist()]
        table[column.name] = [None if gone else cell for gone, cell in zip(missing, cells, strict=True)]
    by_name = {column.name: column for column in columns}
    for copy in (column for column in columns if column.type == "copy"):
        down, _ = renamed(copy, by_name[copy.of])
        table[copy.name] = [None if cell is None else down[str(cell)] for cell in table[copy.of]]
    places = {column.name: column.place for column in columns}
    return dict(sorted(table.items(), key=lambda item: places[item[0]]))


def as_cells(column: Column, y: Tensor) -> list[Value]:
    """Return the numbers of a column as cells: whole ones as integers, days as dates to the second."""
    numbers = column.inverse(y).tolist()
    if column.type == "date":
        return [EPOCH + datetime.timedelta(seconds=round(86400 * number)) for number in numbers]
    if column.decimals is None:
        return list(numbers)
    return [int(number) if column.decimals == 0 else round(number, column.decimals) for number in numbers]


def log_slopes(x: Tensor, columns: Sequence[Column]) -> Tensor:
    """Return `log dy/dx` of each column of `x`, `(n, n_columns)`, 0 for levels and missing cells.

    Added to a log-density of encoded values it makes one in the units of the table.
    """
    kept = [column for column in columns if column.width]
    slopes = torch.zeros(len(x), len(kept), dtype=torch.float64)
    for i, (column, block) in enumerate(zip(kept, x.split([column.width for column in kept], 1), strict=True)):
        if column.is_numeric:
            y = block[:, 0].double()
            slopes[:, i] = torch.where(y.isnan(), 0.0, column.log_slope(y.nan_to_num()))
    return slopes


def read_table(
    path: str | os.PathLike[str], types: Mapping[str, str] | None = None, *, rows: Sequence[int] | None = None
) -> tuple[Tensor, tuple[Column, ...]]:
    """Read a `.csv` or `.parquet` table: the encoded `(n, d)` with NaN for missing cells, and its columns.

    Types are inferred (`infer_columns`) or given, `types={"age": "real", "id": "skip"}`; scales and moments are those
    of `rows`, or of all rows.
    """
    table = read_columns(path)
    columns = infer_columns(table, types, rows=rows)
    return encode(table, columns), columns
