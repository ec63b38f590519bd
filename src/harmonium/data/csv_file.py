"""CSV files as they come: separators, decimal commas, encodings and missing values are found out; pyarrow reads."""

from __future__ import annotations

import datetime
import gzip
import io
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast

from harmonium.data.column import Value
from harmonium.data.extras import require
from harmonium.data.gate import check_file, check_unpacked, read_unpacked
from harmonium.memory import check_room

Table = dict[str, list[Value | None]]
"""The cells of a table by column; None is missing."""

MISSING = frozenset(
    {"", "na", "n/a", "n.a.", "nan", "<na>", "null", "none", "nil", "?", "-", "--", ".", "#n/a", "#na", "#null!",
     "#value!", "#div/0!", "#ref!", "missing", "nat", "n/d", "n.d.", "..", "...", "-nan", "1.#ind", "-1.#ind",
     "1.#qnan", "(null)", "not available", "k.a.", "k. a.", "keine angabe"}
)  # fmt: skip
"""The spellings of a missing value, in lower case."""

SEPARATORS = ("\t", ";", "|", ",")
DATES = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y")

_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+),\d+")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_N_SNIFFED = 50

CELL = 100
"""About how many bytes a cell takes while a table is read."""


def read_csv(path: Path) -> Table:
    """Read a CSV file. The first row names the columns, unless it is one of the rows: then they are x0, x1 …"""
    arrow = require("pyarrow", "tables", "reading tables")
    reader = require("pyarrow.csv", "tables", "reading tables")
    text = decoded(path)
    if not text.strip():
        raise ValueError(f"{path} is empty.")
    if "\0" in text:
        raise ValueError(f"{path} holds bytes that are 0: it is not text, or its end was never written.")
    separator = sniffed(text)
    n_cells = text.count(separator) + text.count("\n") + 1
    if path.suffix == ".gz":
        check_unpacked(CELL * n_cells, path.stat().st_size, path)
    check_room(CELL * n_cells, f"{path} with {n_cells:,} cells")
    ragged: list[tuple[int | None, int, int]] = []

    def refuse(row: object) -> str:
        ragged.append((row.number, row.actual_columns, row.expected_columns))  # type: ignore[attr-defined]
        return "error"

    at_most = text.split("\n", 1)[0].count(separator) + 1
    as_text = {f"f{i}": arrow.string() for i in range(at_most)}
    try:
        read = reader.read_csv(
            io.BytesIO(text.encode()),
            read_options=reader.ReadOptions(
                autogenerate_column_names=True, use_threads=False, block_size=max(1 << 20, len(text) + 1)
            ),
            parse_options=reader.ParseOptions(
                delimiter=separator, invalid_row_handler=refuse, newlines_in_values='"' in text
            ),
            convert_options=reader.ConvertOptions(column_types=as_text, strings_can_be_null=False),
        )
    except arrow.ArrowInvalid as error:
        if ragged:
            number, actual, expected = ragged[0]
            where = "" if number is None else f", line {number}"
            raise ValueError(
                f"{path}{where}: {actual} cells, but the first row has {expected}. Repair or drop the line."
            ) from error
        raise ValueError(f"{path} cannot be read as CSV: {error}.") from error
    columns = [[("" if cell is None else cell).strip() for cell in column.to_pylist()] for column in read.columns]
    first = [column[0] for column in columns]
    if all(is_number(column[0]) or column[0] in column[1:] for column in columns):
        names = [f"x{i}" for i in range(len(columns))]
    else:
        names, columns = first, [column[1:] for column in columns]
    values = [name for name in names if is_number(name) and not name.isdigit() and name.lower() not in MISSING]
    if values:
        raise ValueError(
            f"{path}: the first row must hold the names of the columns. Got {', '.join(map(repr, values[:3]))}. Write "
            "a row of names above it."
        )
    if len(set(names)) < len(names):
        raise ValueError(f"{path}: the names of the columns must differ. Got {names}.")
    if not columns[0]:
        raise ValueError(f"{path} has names of columns but no rows.")
    return {name: parse_cells(cells, commas=separator != ",") for name, cells in zip(names, columns, strict=True)}


def decoded(path: Path) -> str:
    """Return the text of a file in UTF-8, UTF-16 (with its mark) or, where neither holds, Windows-1252."""
    check_file(path)
    data = unzipped(path) if path.suffix == ".gz" else path.read_bytes()
    try:
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return data.decode("utf-16")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is text in no encoding that is known here (UTF-8, UTF-16, Windows-1252).") from error


def unzipped(path: Path) -> bytes:
    """Return what a gzip file holds."""
    try:
        with gzip.open(path) as stream:
            return read_unpacked(cast(IO[bytes], stream), path)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is a damaged gzip file ({error}). Fetch it again.") from error


def sniffed(text: str) -> str:
    """Return the separator: the first that occurs equally often in all of the first lines, outside of quotes.

    >>> sniffed("a;b\\n1,5;2,5\\n")
    ';'
    """
    lines = [re.sub(r'"[^"]*"', "", line) for line in text.splitlines()[:_N_SNIFFED] if line.strip()]
    counts = {separator: [line.count(separator) for line in lines] for separator in SEPARATORS}
    for separator, found in counts.items():
        if found[0] > 0 and len(set(found)) == 1:
            return separator
    numbers = [line.strip() for line in lines[1:]]
    if "," not in lines[0] and any(map(_COMMA.fullmatch, numbers)) and all(map(_is_written_with_commas, numbers)):
        return ";"  # one column of numbers with decimal commas
    return max(reversed(SEPARATORS), key=lambda separator: counts[separator][0])


def parse_cells(cells: Sequence[str], *, commas: bool = False) -> list[Value | None]:
    """Return a column of text as whole numbers if all its cells are, else as numbers, else as dates, else as text.

    A comma is one of decimals; where commas separate (not `commas`) and it stands before three digits, of thousands.

    >>> parse_cells(["1,5", "NA", "1.002,25"], commas=True), parse_cells(["1,002.25", "7"])
    ([1.5, None, 1002.25], [1002.25, 7.0])
    """
    cells = [cell.replace("\N{MINUS SIGN}", "-") if cell.startswith("\N{MINUS SIGN}") else cell for cell in cells]
    missing = [cell.lower() in MISSING for cell in cells]
    known = [cell for cell, gone in zip(cells, missing, strict=True) if not gone]
    has_commas = any("," in cell for cell in known)
    if has_commas and not commas and all(_THOUSANDS.fullmatch(cell) or is_number(cell) for cell in known):
        known = [cell.replace(",", "") for cell in known]
    elif has_commas and all(map(_is_written_with_commas, known)):
        known = [cell.replace(".", "").replace(",", ".") if "," in cell else cell for cell in known]
    values = iter(_parsed(known))
    return [None if gone else next(values) for gone in missing]


def _is_written_with_commas(cell: str) -> bool:
    return _COMMA.fullmatch(cell) is not None or is_number(cell)


def _parsed(known: list[str]) -> list[Value]:
    for kind in (int, float):
        try:
            return [kind(cell) for cell in known]
        except ValueError:
            continue
    for form in DATES:
        try:
            return [datetime.datetime.strptime(cell, form) for cell in known]
        except ValueError:
            continue
    try:
        return [_in_utc(datetime.datetime.fromisoformat(cell)) for cell in known]  # zones, parts of seconds
    except ValueError:
        return list(known)


def _in_utc(when: datetime.datetime) -> datetime.datetime:
    return when if when.tzinfo is None else when.astimezone(datetime.UTC).replace(tzinfo=None)


def is_number(cell: str) -> bool:
    """Say whether the text is a number or a missing value.

    >>> is_number("1e3"), is_number("n/a"), is_number("x")
    (True, True, False)
    """
    try:
        float(cell)
    except ValueError:
        return cell.strip().lower() in MISSING
    return True
