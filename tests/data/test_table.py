"""Tables: types inferred and given, missing cells, the encoding and its inverse."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from harmonium.data import Column, decode, encode, infer_columns, load, read_columns, read_table

TEXT = """age,smokes,color,stars,code
31.5,yes,red,1,100
47,no,blue,2,200
,yes,green,3,300
52.25,?,red,3,400
29,no,NA,2,500
61,no,blue,1,600
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "people.csv"
    file.write_text(TEXT)
    return file


def test_inferred_types(path: Path) -> None:
    x, columns = read_table(path)
    assert [(column.name, column.type) for column in columns] == [
        ("age", "real"),
        ("smokes", "binary"),
        ("color", "categorical"),
        ("stars", "categorical"),
        ("code", "real"),
    ]
    assert columns[1].levels == ("no", "yes") and columns[2].levels == ("blue", "green", "red")
    assert columns[3].levels == (1, 2, 3)
    assert x.shape == (6, 1 + 1 + 3 + 3 + 1) and x.dtype == torch.float32


def test_encoding(path: Path) -> None:
    x, columns = read_table(path)
    ages = torch.tensor([31.5, 47, 52.25, 29, 61], dtype=torch.float64)
    assert columns[0].mean == pytest.approx(float(ages.mean()))
    assert columns[0].std == pytest.approx(float(ages.std(correction=0)))
    assert float(x[0, 0]) == pytest.approx((31.5 - columns[0].mean) / columns[0].std, rel=1e-6)
    assert x[:, 1].isnan().tolist() == [False, False, False, True, False, False]
    assert x[0, 2:5].tolist() == [0, 0, 1]
    assert x[4, 2:5].isnan().all()
    assert x[2, 0].isnan() and x.isnan().sum() == 1 + 1 + 3


def test_decode_inverts_encode(path: Path) -> None:
    table = read_columns(path)
    columns = infer_columns(table)
    back = decode(encode(table, columns), columns)
    for name, cells in table.items():
        for cell, other in zip(cells, back[name], strict=True):
            assert other == (pytest.approx(cell, rel=1e-6) if isinstance(cell, float | int) else cell)
    broken = encode(table, columns)
    broken[0, 1] = 1 - broken[0, 1]
    assert decode(broken, columns)["smokes"][0] != table["smokes"][0]


def test_types_can_be_given(path: Path) -> None:
    x, columns = read_table(path, types={"stars": "real", "code": "drop", "smokes": "categorical"})
    assert {column.name: column.type for column in columns} == {
        "age": "real",
        "smokes": "categorical",
        "color": "categorical",
        "stars": "real",
    }
    assert x.shape == (6, 1 + 2 + 3 + 1)


def test_wrong_types_are_errors(path: Path) -> None:
    for text, types in [
        ("columns that are not there", {"ages": "real"}),
        ("must be one of binary, categorical, real or drop", {"age": "number"}),
        ("cannot be real: it holds the text", {"color": "real"}),
        ("cannot be binary: it has 3 distinct", {"color": "binary"}),
        ("nothing is left", dict.fromkeys(["age", "smokes", "color", "stars", "code"], "drop")),
    ]:
        with pytest.raises(ValueError, match=text):
            read_table(path, types)


def test_moments_come_from_the_training_rows_only(path: Path) -> None:
    _, columns = read_table(path, rows=[0, 1])
    assert columns[0].mean == pytest.approx((31.5 + 47) / 2)
    _, every = read_table(path)
    assert every[0].mean != pytest.approx(columns[0].mean)


def test_malformed_csv(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for text, content in [
        ("line 3: 1 cells, but the first row has 2", b"a,b\n1,2\n3\n"),
        ("is empty", b""),
        ("no rows", b"a,b\n"),
        ("must differ", b"a,a\n1,2\n"),
        ("not a CSV file in UTF-8", b"a,b\n\xff\xfe,1\n"),
        ("only missing values", b"a,b\n1,\n2,\n"),
        ("infinite", b"a\ninf\n1\n2\n"),
    ]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=text):
            read_table(path)


def test_names_of_people_are_not_guessed_to_be_categories(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("name,v\n" + "".join(f"person {i},{i / 7}\n" for i in range(150)))
    with pytest.raises(ValueError, match="150 distinct texts"):
        read_table(path)
    assert read_table(path, {"name": "drop"})[0].shape == (150, 1)
    assert read_table(path, {"name": "categorical"})[0].shape == (150, 151)


def test_without_header_and_constant_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("1.5,7,a\n2.5,7,a\n3.5,7,a\n")
    with_header = read_columns(path)
    assert list(with_header) == ["1.5", "7", "a"]  # text in the first row makes it a header
    path.write_text("1.5,7\n2.5,7\n3.5,7\n")
    x, columns = read_table(path)
    assert [column.name for column in columns] == ["x0", "x1"]
    assert columns[1].std == 1 and x[:, 1].tolist() == [0, 0, 0]
    one = Column("only", "categorical", ("a",))
    assert encode({"only": ["a", None]}, [one])[0].tolist() == [1]


def test_unseen_level_and_wrong_width(path: Path) -> None:
    column = Column("color", "categorical", ("blue", "red"))
    with pytest.raises(ValueError, match="'green', which is not one of its levels"):
        encode({"color": ["green"]}, [column])
    with pytest.raises(ValueError, match=r"must have shape \(n, 2\)"):
        decode(torch.zeros(3, 5), [column])
    with pytest.raises(ValueError, match="no column 'color'"):
        encode({"hue": ["red"]}, [column])
    with pytest.raises(ValueError, match="must be one of binary, categorical, real"):
        Column("x", "ordinal")


def test_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    table = {"v": [0.5, None, 2.5, 9], "flag": [True, False, None, True], "word": ["a", "b", "c", "a"]}
    parquet.write_table(arrow.table(table), path)
    x, columns = read_table(path)
    assert [column.type for column in columns] == ["real", "binary", "categorical"]
    assert x.isnan().sum() == 2 and decode(x, columns)["flag"] == [True, False, None, True]
    parquet.write_table(arrow.table({"v": [[1], [2]]}), path)
    with pytest.raises(ValueError, match="holds list values"):
        read_table(path)
    path.write_bytes(b"PAR1 nothing")
    with pytest.raises(ValueError, match="not a readable Parquet file"):
        read_table(path)


def test_load_standardizes_on_the_training_split(tmp_path: Path, generator: torch.Generator) -> None:
    path = tmp_path / "x.csv"
    path.write_text("v,w\n" + "".join(f"{i * i / 7},{i % 3}\n" for i in range(100)))
    data = load(path, generator=generator, types={"w": "real"})
    assert data.kind == "table" and len(data.train) == 80 and len(data.columns) == 2
    assert torch.allclose(data.train.mean(0), torch.zeros(2), atol=1e-5)
    assert torch.allclose(data.train.std(0, correction=0), torch.ones(2), atol=1e-5)
    assert data.test is not None and not torch.allclose(data.test.mean(0), torch.zeros(2), atol=1e-5)
    assert "standardized on train" in data.note
