"""Columns that rename another: found, left out, put back, and used where the other is missing."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from harmonium.cli.entry import run
from harmonium.data import Column, decode, encode, infer_columns, read_columns
from harmonium.evaluation.imputation import Filled, with_followers

NAMES = {1: "First", 2: "Second", 3: "Third"}


def people(n: int = 60) -> dict[str, list]:
    """Return a table in which "class" renames "grade", "alive" renames "survived", and "sex" does neither."""
    draws = random.Random(3)
    grade = [draws.choice([1, 2, 3]) for _ in range(n)]
    survived = [draws.choice([0, 1]) for _ in range(n)]
    grade[7] = survived[9] = None  # type: ignore[call-overload]
    return {
        "survived": survived,
        "grade": grade,
        "age": [draws.gauss(40, 10) for _ in range(n)],
        "sex": [draws.choice(["f", "m"]) for _ in range(n)],
        "class": [NAMES.get(x) for x in grade],
        "alive": [None if x is None else ("yes" if x else "no") for x in survived],
    }


def test_what_renames_an_earlier_column_is_a_copy_of_it() -> None:
    by_name = {column.name: column for column in infer_columns(people())}
    assert {name: column.type for name, column in by_name.items()} == {
        "age": "positive",
        "survived": "binary",
        "grade": "ordinal",
        "sex": "binary",
        "class": "copy",
        "alive": "copy",
    }
    assert (by_name["class"].of, by_name["class"].levels) == ("grade", ("First", "Second", "Third"))
    assert (by_name["alive"].of, by_name["alive"].levels) == ("survived", ("no", "yes"))
    assert "'survived' in other words" in by_name["alive"].note
    assert Column.from_dict(by_name["class"].to_dict()) == by_name["class"]


def test_what_differs_in_one_row_or_one_hole_is_none() -> None:
    table = people()
    table["class"][0] = "Third" if table["class"][0] != "Third" else "First"
    table["alive"][1] = None
    assert not [column for column in infer_columns(table) if column.type == "copy"]


def test_a_type_that_is_told_stands() -> None:
    types = {column.name: column.type for column in infer_columns(people(), {"alive": "binary"})}
    assert types["alive"] == "binary" and types["class"] == "copy"
    with pytest.raises(ValueError, match="'sex' cannot be told to be a copy"):
        infer_columns(people(), {"sex": "copy"})


def test_few_rows_agree_by_chance() -> None:
    """One odd row of 40 is in the same place in two independent columns in one of 40 cases: no evidence."""
    odd = [0] * 39 + [1]
    assert [column.type for column in infer_columns({"a": odd, "b": odd})] == ["binary", "binary"]
    both = [0] * 20 + [1] * 20
    assert [column.type for column in infer_columns({"a": both, "b": both})] == ["binary", "copy"]


def test_a_copy_is_known_where_its_source_is_missing_and_is_put_back() -> None:
    table = people()
    columns = infer_columns(table)
    x = encode(table, columns)
    holes = table | {"grade": [None] * 60}
    assert torch.equal(encode(holes, columns).nan_to_num(-1), x.nan_to_num(-1))
    assert torch.equal(encode({k: v for k, v in table.items() if k != "grade"}, columns).isnan(), x.isnan())
    back = decode(x, columns)
    assert list(back) == list(table)
    assert all(back[name] == table[name] for name in ("survived", "grade", "sex", "class", "alive"))


def test_contradictions_and_unknown_levels_are_told() -> None:
    table = people()
    columns = infer_columns(table)
    wrong = table | {"alive": ["yes" if cell == "no" else cell for cell in table["alive"]]}
    with pytest.raises(ValueError, match="'alive' holds 'yes' where 'survived' is 0, which goes with 'no'"):
        encode(wrong, columns)
    heard: list[str] = []
    x = encode(wrong, columns, on_unseen=heard.append)
    assert torch.equal(x.isnan(), encode(table, columns).isnan()) and "'survived' is believed" in heard[0]
    odd = table | {"class": ["Fourth", *table["class"][1:]]}
    with pytest.raises(ValueError, match="'class' holds 'Fourth', which is not one of its levels"):
        encode(odd, columns)


def test_filled_cells_bring_their_copies() -> None:
    columns = infer_columns(people())
    table = {"survived": [None, 1, None], "alive": [None, None, "no"], "grade": [1, 2, 3]}
    filled = with_followers(table, [Filled(0, "survived", 1, probability=0.8)], columns)
    assert [(cell.row, cell.column, cell.value, cell.probability) for cell in filled] == [
        (0, "survived", 1, 0.8),
        (0, "alive", "yes", 0.8),
        (1, "alive", "yes", 1.0),
        (2, "survived", 0, 1.0),
    ]


def test_on_the_command_line(tmp_path: Path) -> None:
    table, file = people(120), tmp_path / "people.csv"
    rows = zip(*table.values(), strict=True)
    lines = [",".join(table), *(",".join("" if c is None else str(c) for c in row) for row in rows)]
    file.write_text("\n".join(lines) + "\n")
    told = ["train", "--data", str(file), "--components", "2", "--shrinkage", "0.5", "-q", "--no-report"]
    assert run([*told, "-o", str(tmp_path / "run")]) == 0
    assert run(["sample", str(tmp_path / "run"), "--rows", "200", "-o", str(tmp_path / "s.csv"), "-q"]) == 0
    drawn = read_columns(tmp_path / "s.csv")
    assert drawn["class"] == [NAMES[x] for x in drawn["grade"]]  # type: ignore[index]
    assert drawn["alive"] == ["yes" if x else "no" for x in drawn["survived"]]
    new = tmp_path / "new.csv"
    new.write_text("age,class,survived,alive\n30,Second,,\n40,,1,\n")
    assert run(["impute", str(tmp_path / "run"), str(new), "-q"]) == 0
    done = read_columns(tmp_path / "new-imputed.csv")
    assert None not in [cell for cells in done.values() for cell in cells]
    assert done["alive"] == ["yes" if x else "no" for x in done["survived"]] and done["class"][0] == "Second"
