"""A table on the command line: the default command, then impute, score, transform and sample without the table."""

from __future__ import annotations

import csv
import json
import math
import random
from pathlib import Path

import pytest

from harmonium.cli.entry import run
from harmonium.runs import Run


def write_people(path: Path, n: int = 100) -> None:
    """Write a table of two groups of people with every kind of column, and a hole in every row."""
    draws = random.Random(5)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["id", "height", "weight", "sex", "city", "children", "planet", "born"])
        for i in range(n):
            tall = draws.random() < 0.5
            height = draws.gauss(183 if tall else 165, 6)
            weight = math.exp(0.02 * height + draws.gauss(0.75, 0.12))
            cells = [
                f"{height:.1f}".replace(".", ","),
                f"{weight:.2f}".replace(".", ","),
                "m" if tall else "f",
                draws.choice(["Delft", "Leiden", "Gouda"]),
                str(min(4, int(draws.expovariate(0.7)))),
            ]
            cells[i % 5] = "NA"
            writer.writerow([f"p{i:04}", *cells, "Earth", f"{draws.randint(1950, 1999)}-0{draws.randint(1, 9)}-15"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train on the table, a size given for speed and without a report, and take the table away."""
    place = tmp_path_factory.mktemp("people")
    write_people(place / "people.csv")
    told = ["train", "--data", str(place / "people.csv"), "-q", "--no-report", "-o", str(place / "run")]
    assert run([*told, "--components", "3", "--shrinkage", "0.1"]) == 0
    (place / "people.csv").rename(place / "elsewhere.csv")
    return place


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_it_learns_and_keeps_what_it_knows_of_the_table(folder: Path) -> None:
    opened = Run.open(folder / "run")
    scores = opened.evaluation()
    assert opened.config.model.kind == "table" and opened.config.own.components == 3  # type: ignore[attr-defined]
    assert scores is not None and scores["test"]["n"] == 10 and scores["test"]["kind"] == "exact"
    assert scores["valid"]["value"] > scores["baseline"]["value"] - 3
    assert scores["moments"]["mean"] < 0.3 and scores["moments"]["spread"] < 1.3
    kept = json.loads((folder / "run" / "data.json").read_text())
    types = {column["name"]: column["type"] for column in kept["columns"]}
    assert types == {
        "height": "positive",
        "weight": "positive",
        "born": "date",
        "sex": "binary",
        "city": "categorical",
        "children": "ordinal",
        "id": "identifier",
        "planet": "constant",
    }


def test_samples_look_like_the_table(folder: Path) -> None:
    out = folder / "samples.csv"
    assert run(["sample", str(folder / "run"), "--rows", "200", "-o", str(out), "-q"]) == 0
    rows = read(out)
    assert list(rows[0]) == ["height", "weight", "sex", "city", "children", "planet", "born"] and len(rows) == 200
    original = [row["height"] for row in read_semicolons(folder / "elsewhere.csv") if row["height"] != "NA"]
    heights = [float(text.replace(",", ".")) for text in original]
    for row in rows:
        assert len(row["height"].partition(".")[2]) <= 1 and len(row["weight"].partition(".")[2]) <= 2
        assert min(heights) <= float(row["height"]) <= max(heights)
        assert row["children"] in "01234" and row["planet"] == "Earth" and len(row["born"]) == 10
    tall, small = ([float(row["height"]) for row in rows if row["sex"] == sex] for sex in "mf")
    assert sum(tall) / len(tall) > sum(small) / len(small) + 8


def read_semicolons(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter=";"))


def test_impute_fills_every_hole_and_leaves_the_rest(folder: Path) -> None:
    out = folder / "filled.csv"
    assert run(["impute", str(folder / "run"), str(folder / "elsewhere.csv"), "-o", str(out), "-q"]) == 0
    before, after = read_semicolons(folder / "elsewhere.csv"), read(out)
    sure = read(folder / "filled-uncertainty.csv")
    assert len(sure) == len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        assert old["id"] == new["id"] and all(new.values())
        assert all(new[name] == old[name].replace(",", ".") or old[name] == "NA" for name in ("sex", "city"))
    numbers = [cell for cell in sure if cell["column"] == "height"]
    assert all(float(cell["low"]) <= float(cell["value"]) <= float(cell["high"]) for cell in numbers)
    levels = [float(cell["probability"]) for cell in sure if cell["column"] == "sex"]
    assert all(0.4 < p <= 1 for p in levels)
    several = folder / "several.csv"
    told = ["impute", str(folder / "run"), str(folder / "elsewhere.csv"), "--multiple", "3", "-o", str(several), "-q"]
    assert run(told) == 0
    assert [row["imputation"] for row in read(several)] == ["1"] * 100 + ["2"] * 100 + ["3"] * 100


def test_score_and_transform(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    strange = folder / "strange.csv"
    strange.write_text("height,weight,sex,city\n165.0,62.0,f,Delft\n165.0,140.0,f,Delft\n170.1,,m,Paris\n")
    out = folder / "scores.csv"
    assert run(["score", str(folder / "run"), str(strange), "-o", str(out)]) == 0
    said = capsys.readouterr()
    assert "no column 'born'" in said.err and "'Paris', which is not one of its levels" in said.err
    usual, odd, _ = read(out)
    assert float(odd["anomaly"]) > float(usual["anomaly"]) and "weight" in odd["because"]
    assert float(odd["p_value"]) < 0.05 < float(usual["p_value"])
    assert run(["transform", str(folder / "run"), str(strange), "-o", str(folder / "h.csv"), "-q"]) == 0
    for row in read(folder / "h.csv"):
        assert sum(map(float, row.values())) == pytest.approx(1, abs=1e-4)


def test_what_needs_the_table_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", str(folder / "run"), "-q"]) == 2
    assert "people.csv" in capsys.readouterr().err
    write_people(folder / "people.csv", n=151)
    try:
        assert run(["evaluate", str(folder / "run"), "-q"]) == 2
        assert "no longer the data" in capsys.readouterr().err
    finally:
        (folder / "people.csv").unlink()


def test_columns_are_overruled_in_one_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_people(tmp_path / "people.csv", n=40)
    told = ["train", "--data", str(tmp_path / "people.csv"), "--columns", "born=skip, children=real", "--no-report"]
    assert run([*told, "--epochs", "1", "-o", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    own = Run.open(tmp_path / "run").config.own
    assert f"chosen: {own.components} components" in said  # type: ignore[attr-defined]
    assert "identifier" in said and "as told" in said and "Overrule a type" in said
    kept = json.loads((tmp_path / "run" / "data.json").read_text())
    types = {column["name"]: column["type"] for column in kept["columns"]}
    assert types["born"] == "skip" and types["children"] == "real"
    assert run(["train", "--data", str(tmp_path / "people.csv"), "--columns", "born"]) == 2
    assert "pairs of a name and a type" in capsys.readouterr().err
    assert run(["train", "--data", "moons", "--model", "table"]) == 2
    assert "does not take" in capsys.readouterr().err


def test_a_file_of_other_columns_is_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.csv"
    other.write_text("depth,salt\n1.5,2\n2.5,3\n")
    assert run(["score", str(folder / "run"), str(other)]) == 2
    told = capsys.readouterr().err
    assert "has none of the columns" in told and "'height'" in told and "'depth'" in told
    other.write_text("height,salt\n170.5,2\n182.5,3\n")  # one of them is enough
    assert run(["score", str(folder / "run"), str(other)]) == 0


def test_the_list_names_the_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", str(folder)]) == 0
    assert "people.csv, table, 3" in " ".join(capsys.readouterr().out.split())
