"""Tables: columns inferred and given, files as they come, the encoding, its slope and its inverse."""

from __future__ import annotations

import datetime
import gzip
import json
import math
import re
from pathlib import Path

import pytest
import torch

from harmonium.data import Column, decode, encode, infer_columns, load, log_slopes, read_columns, read_table
from harmonium.data.csv_file import parse_cells
from harmonium.data.infer import decimals_of

TEXT = """age,smokes,color,stars,code
31.5,yes,red,1,100
47,no,blue,2,200
,yes,green,3,300
52.25,?,red,3,400
29,no,NA,2,525
61,no,blue,1,600
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "people.csv"
    file.write_text(TEXT)
    return file


def types_of(table: dict[str, list], **types: str) -> dict[str, str]:
    return {column.name: column.type for column in infer_columns(table, types)}


def test_inferred_types(path: Path) -> None:
    x, columns = read_table(path)
    assert [(column.name, column.type, column.place) for column in columns] == [
        ("age", "positive", 0),
        ("code", "count", 4),
        ("smokes", "binary", 1),
        ("color", "categorical", 2),
        ("stars", "ordinal", 3),
    ]
    by_name = {column.name: column for column in columns}
    assert by_name["smokes"].levels == ("no", "yes") and by_name["color"].levels == ("blue", "green", "red")
    assert by_name["stars"].levels == (1, 2, 3)
    assert (by_name["age"].decimals, by_name["code"].decimals, by_name["code"].step) == (2, 0, 25)
    assert x.shape == (6, 1 + 1 + 1 + 3 + 3)


def test_what_is_left_out_is_said() -> None:
    n = 60
    table: dict[str, list] = {
        "id": [1000 + 7 * i for i in range(n)],
        "row": list(range(n)),
        "ticket": [f"T{i:03}" for i in range(n)],
        "country": ["NL"] * n,
        "nothing": [None] * n,
        "x": [i * 0.37 - 9 for i in range(n)],
        "day": [datetime.datetime(2024, 1, 1) + datetime.timedelta(days=i) for i in range(n)],
        "level": [-999 if i % 9 == 0 else float(i % 31) for i in range(n)],
    }
    columns = {column.name: column for column in infer_columns(table)}
    assert {name: column.type for name, column in columns.items()} == {
        "id": "identifier",
        "row": "identifier",
        "ticket": "identifier",
        "country": "constant",
        "nothing": "empty",
        "x": "real",
        "day": "date",
        "level": "count",
    }
    assert all(columns[name].note for name in ("id", "row", "ticket", "country", "nothing"))
    assert "-999 read as missing" in columns["level"].note and columns["level"].low == 0
    back = decode(encode(table, list(columns.values())), list(columns.values()))
    assert back["country"] == table["country"] and back["day"] == table["day"] and "id" not in back
    assert types_of({"id": [5, 3, 5, 3, 9, 9] * 9, "x": [1.5, 2.5, 3.0, 4.0, 5.5, 1.0] * 9})["id"] == "ordinal"


def test_free_text_is_an_error_in_words() -> None:
    table: dict[str, list] = {"name": [f"Mr. Person {i}" for i in range(150)], "v": [i / 7 for i in range(150)]}
    with pytest.raises(ValueError, match=r"150 distinct texts in 150 rows.*--columns name=skip"):
        infer_columns(table)
    assert types_of(table, name="skip") == {"v": "positive", "name": "skip"}
    assert types_of(table, name="categorical")["name"] == "categorical"


def test_wrong_types_are_errors(path: Path) -> None:
    for text, types in [
        ("there are no columns", {"ages": "real"}),
        ("must be one of real, positive, count", {"age": "number"}),
        ("cannot be real: it holds the text", {"color": "real"}),
        ("cannot be binary: it has 3 distinct", {"color": "binary"}),
        ("nothing is left", dict.fromkeys(["age", "smokes", "color", "stars", "code"], "skip")),
    ]:
        with pytest.raises(ValueError, match=text):
            read_table(path, types)
    with pytest.raises(ValueError, match="cannot be positive: it holds -1"):
        infer_columns({"x": [-1.0, 2.0, 3.0]}, {"x": "positive"})


def skewed(n: int = 400) -> list[float]:
    normal = torch.distributions.Normal(0.0, 1.0)
    return [round(math.exp(0.7 * float(normal.icdf(torch.tensor((i + 0.5) / n))) + 3), 2) for i in range(n)]


@pytest.mark.parametrize("shift", [0.0, -20.0])
def test_slope_is_that_of_the_scale(shift: float) -> None:
    """`log dy/dx` against a difference quotient, for a bent scale of positive numbers and of both signs."""
    cells = [value + shift for value in skewed()]
    (column,) = infer_columns({"x": cells})
    assert column.scale == ("power" if shift == 0 else "signed power") and "skewed" in column.note
    x = torch.tensor(cells, dtype=torch.float64)[5:-5]
    step = 1e-5
    quotient = (column.forward(x + step) - column.forward(x - step)) / (2 * step)
    assert torch.allclose(log_slopes(column.forward(x)[:, None], [column])[:, 0].exp(), quotient, rtol=1e-6)
    assert torch.allclose(column.inverse(column.forward(x)), x, atol=1e-9)
    straight = Column("x", "real", center=column.center, unit=column.unit)
    assert not torch.allclose(log_slopes(straight.forward(x)[:, None], [straight])[:, 0].exp(), quotient, rtol=1e-2)


def test_log_scale_of_a_log_normal_and_none_of_a_normal() -> None:
    (column,) = infer_columns({"x": skewed()})
    assert column.power <= 0.1
    symmetric = [math.log(value) for value in skewed()]
    (column,) = infer_columns({"x": symmetric})
    assert column.scale == "linear"


def test_scales_come_from_the_training_rows_only(path: Path) -> None:
    _, columns = read_table(path, rows=[0, 1])
    assert columns[0].center == pytest.approx((31.5 + 47) / 2)
    _, every = read_table(path)
    assert every[0].center != pytest.approx(columns[0].center)
    assert columns[0].high == 61, "the range is that of all rows"


def test_decode_inverts_encode(path: Path) -> None:
    table = read_columns(path)
    columns = infer_columns(table)
    assert decode(encode(table, columns), columns) == table
    broken = encode(table, columns)
    broken[0, 2] = 1 - broken[0, 2]
    assert decode(broken, columns)["smokes"][0] != table["smokes"][0]
    far = torch.full((1, 9), 50.0, dtype=torch.float64)
    assert decode(far, columns)["age"] == [61.0], "within the range of the data"


def test_columns_survive_json(path: Path) -> None:
    day = Column("day", "binary", (datetime.datetime(2024, 1, 1), datetime.datetime(2025, 1, 1)))
    for column in (*read_table(path)[1], day):
        assert Column.from_dict(json.loads(json.dumps(column.to_dict()))) == column


def test_separators_commas_and_encodings(tmp_path: Path) -> None:
    rows = [("größe", "wert", "tag"), ("1,5", "7", "01.02.2024"), ("1.002,25", "n/a", "28.02.2024")]
    for separator, encoding in ((";", "utf-8"), (";", "cp1252"), ("\t", "utf-16"), ("|", "utf-8-sig")):
        file = tmp_path / "x.csv"
        file.write_bytes("\n".join(separator.join(row) for row in rows).encode(encoding))
        table = read_columns(file)
        assert list(table) == ["größe", "wert", "tag"]
        assert table["größe"] == [1.5, 1002.25] and table["wert"] == [7, None]
        assert table["tag"][0] == datetime.datetime(2024, 2, 1)
    file.write_text('a,b\n"x, y",1\n"with\na line",2\n')
    assert read_columns(file) == {"a": ["x, y", "with\na line"], "b": [1, 2]}
    packed = tmp_path / "x.csv.gz"
    packed.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert read_columns(packed) == {"a": [1], "b": [2]}


def test_malformed_csv(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for text, content in [
        ("line 3: 1 cells, but the first row has 2", b"a,b\n1,2\n3\n"),
        ("is empty", b""),
        ("no rows", b"a,b\n"),
        ("must differ", b"a,a\n1,2\n"),
        ("no encoding", b"a,b\n\x81\x8d,1\n"),
        ("infinite", b"a\ninf\n1\n2\n"),
    ]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=text):
            read_table(path)


def test_without_header(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("1.5,7,a\n2.5,7,a\n3.5,7,a\n")
    assert list(read_columns(path)) == ["x0", "x1", "x2"]  # the text of the first row is one of the values below
    path.write_text("name,1.5,7\nbob,2.5,7\n")
    with pytest.raises(ValueError, match="must hold the names of the columns. Got '1.5'"):
        read_columns(path)
    for first in (",b", "2019,2020", "n/a,nan"):  # an index, years, a name that looks like nothing
        path.write_text(f"{first},city\n1.5,7,x\n2.5,7,y\n")
        assert list(read_columns(path)) == [*first.split(","), "city"]
    path.write_text("1.5,7\n2.5,7\n3.5,7\n")
    _, columns = read_table(path)
    assert [(column.name, column.type) for column in columns] == [("x0", "positive"), ("x1", "constant")]


def test_unseen_level_and_wrong_width() -> None:
    column = Column("color", "categorical", ("blue", "red"))
    with pytest.raises(ValueError, match="'green', which is not one of its levels"):
        encode({"color": ["green"]}, [column])
    told: list[str] = []
    assert bool(encode({"color": ["green"]}, [column], on_unseen=told.append).isnan().all()) and "missing" in told[0]
    with pytest.raises(ValueError, match=r"must have shape \(n, 2\)"):
        decode(torch.zeros(3, 5), [column])
    with pytest.raises(ValueError, match="no column 'color'"):
        encode({"hue": ["red"]}, [column])
    with pytest.raises(ValueError, match="must be one of real, positive"):
        Column("x", "number")


def test_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    table = {
        "v": [0.5, None, 2.5, -9.0],
        "flag": [True, False, None, True],
        "word": ["a", "b", "c", "a"],
        "day": [datetime.date(2024, 1, day) for day in (1, 2, 3, 4)],
    }
    parquet.write_table(arrow.table(table), path)
    x, columns = read_table(path)
    assert {column.name: column.type for column in columns} == {
        "v": "real",
        "flag": "binary",
        "word": "categorical",
        "day": "date",
    }
    assert x.isnan().sum() == 2 and decode(x, columns)["flag"] == [True, False, None, True]
    parquet.write_table(arrow.table({"v": [[1], [2]]}), path)
    with pytest.raises(ValueError, match="holds list.* values"):
        read_table(path)
    path.write_bytes(b"PAR1 nothing")
    with pytest.raises(ValueError, match="not a Parquet file that can be read"):
        read_table(path)


def test_load_scales_on_the_training_split(tmp_path: Path, generator: torch.Generator) -> None:
    path = tmp_path / "x.csv"
    path.write_text("v,w\n" + "".join(f"{i * i / 7},{i % 3}\n" for i in range(100)))
    data = load(path, generator=generator, types={"w": "real"})
    assert data.kind == "table" and len(data.train) == 80 and len(data.columns) == 2
    assert torch.allclose(data.train.mean(0), torch.zeros(2).double(), atol=1e-5)
    assert torch.allclose(data.train.std(0, correction=0), torch.ones(2).double(), atol=1e-5)
    assert data.test is not None and not torch.allclose(data.test.mean(0), torch.zeros(2).double(), atol=1e-5)


@pytest.mark.parametrize(
    ("cells", "value"),
    [
        (["2020-01-05T10:00:00Z", "2020-01-06T12:00:00+02:00"], datetime.datetime(2020, 1, 5, 10)),
        (["2020-01-05 10:00:00.250", "2020-01-06 10:00:00"], datetime.datetime(2020, 1, 5, 10, 0, 0, 250000)),
        (["\N{MINUS SIGN}7.5", "1"], -7.5),
        (["1,032.5", "12"], 1032.5),
        (["7,58", "12"], 7.58),
        (["#DIV/0!", "2"], None),
        (["k.A.", "2,5"], None),
    ],
)
def test_spellings_of_cells(cells: list[str], value: object) -> None:
    assert parse_cells(cells)[0] == value


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("{}.5%", "numbers with a sign or a unit, such as '0.5%'"),
        ("$ {}", "numbers with a sign or a unit"),
        ("{} kg", "numbers with a sign or a unit"),
        ("{}", "in 1 of 30 cells, other text, such as 'unknown'"),
    ],
)
def test_numbers_in_disguise_are_not_left_out_in_silence(cell: str, words: str) -> None:
    cells = [cell.format(i) for i in range(29)] + ["unknown" if cell == "{}" else cell.format(29)]
    with pytest.raises(ValueError, match=re.escape(words)):
        infer_columns({"x": cells, "y": [0, 1] * 15})
    columns = infer_columns({"x": [f"{i}{'ab'[i % 2]}" for i in range(30)], "y": [0, 1] * 15})
    assert columns[0].type == "identifier"  # the control: letters that differ are part of a name


def test_whole_numbers_that_no_float_holds(tmp_path: Path) -> None:
    columns = {c.name: c for c in infer_columns({"x": [10**20 + i for i in range(30)], "y": [0, 1, 2] * 10})}
    assert columns["x"].type == "identifier" and "15 digits" in columns["x"].note
    with pytest.raises(ValueError, match="more than 308 digits"):
        encode({"a": [10**400]}, [Column("a", "real")])
    with pytest.raises(ValueError, match="the table has one row"):
        infer_columns({"a": [1], "b": [2]})
    for text, words in (("x\n7,58\n1,5\n", None), ("x,y\n1,2\0\n", "bytes that are 0")):
        (tmp_path / "t.csv").write_text(text)
        if words is None:
            assert read_columns(tmp_path / "t.csv") == {"x": [7.58, 1.5]}
        else:
            with pytest.raises(ValueError, match=words):
                read_columns(tmp_path / "t.csv")


def test_decimals_of_small_numbers() -> None:
    """Seven decimals, as in breast cancer's mean concavity; numbers with all digits have none."""
    assert decimals_of(torch.tensor([0.0009737, 0.3001], dtype=torch.float64)) == 7
    assert decimals_of(torch.tensor([0.1 + 0.2, 0.5], dtype=torch.float64)) == 1
    assert decimals_of(torch.tensor([math.pi, 1.0], dtype=torch.float64)) is None
