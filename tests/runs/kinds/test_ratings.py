"""Ratings on the command line, from a table of user, item and rating, and from MovieLens."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.kill_resume import fingerprint
from harmonium.cli.entry import run
from harmonium.data import load
from harmonium.models import RatingRBM
from harmonium.plots import write_report
from harmonium.runs import Run
from harmonium.runs.config import default_kind

TINY = ["train", "--data", "stars.csv", "--epochs", "3", "--n-hidden", "3", "--threads", "1", "-q"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    generator = torch.Generator().manual_seed(0)
    lines = ["userId,movieId,rating"]
    for user in range(12):
        for item in range(9):
            if torch.rand((), generator=generator) < 0.8:
                lines.append(f"u{user},film {item},{1 + (user + item) % 3}")
    Path("stars.csv").write_text("\n".join(lines))


def test_a_table_of_ratings_is_read(tmp_path: Path) -> None:
    data = load("stars.csv")
    assert data.kind == "ratings" and data.train.shape == (12, 9) and data.columns[2].name == "film 2"
    assert data.columns[0].levels == (1, 2, 3)
    tables = [data.train, data.valid, data.test]
    there = torch.stack([~table.isnan() for table in tables if table is not None])
    assert int(there.sum(0).max()) == 1 and int(there.sum()) == len(Path("stars.csv").read_text().splitlines()) - 1
    assert data.train[0, 1].isnan() or data.train[0, 1] == 2
    Path("twice.csv").write_text("user,item,rating\n1,1,5\n1,1,4\n1,2,3\n")
    with pytest.raises(ValueError, match="In twice a user rated an item more than once"):
        load("twice.csv")
    Path("holes.csv").write_text("user,item,rating\n1,1,\n1,2,3\n")
    with pytest.raises(ValueError, match="column rating has empty cells"):
        load("holes.csv")
    Path("words.csv").write_text("user,item,rating\n1,1,good\n1,2,bad\n")
    with pytest.raises(ValueError, match="column rating must hold numbers"):
        load("words.csv")


def test_it_trains_scores_draws_and_reports(capsys: pytest.CaptureFixture[str]) -> None:
    assert default_kind("stars.csv") == "ratings"
    assert run([*TINY, "--no-report", "-o", "one"]) == 0
    opened = Run.open("one")
    model = opened.model()
    assert isinstance(model, RatingRBM) and model.rows == "items" and model.levels == (1, 2, 3)
    scores = json.loads(Path("one/evaluation.json").read_text())["ratings"]
    assert set(scores) == {"valid", "test"} and 0 < scores["test"]["rmse"] < 2 and scores["test"]["nats"] < 0
    assert scores["test"]["nats_error"] > 0
    assert "validation_rmse" in opened.metrics()[-1]
    write_report(opened)
    text = Path("one/report.html").read_text()
    assert "Recommendations" in text and "<p>User 1: film" in text and "(RMSE)" in text
    assert run(["inpaint", "one"]) == 2
    assert "Missing ratings are not drawn but predicted" in capsys.readouterr().err
    assert run(["logz", "one"]) == 2
    assert "kind 'ratings' has conditions (rated, shares)" in capsys.readouterr().err
    assert run(["sample", "one", "-n", "3", "--steps", "2", "-o", "s.npy"]) == 0
    drawn, train = torch.from_numpy(np.load("s.npy")), opened.data().train[:3]
    assert torch.equal(drawn.isnan(), train.isnan()) and set(drawn[~drawn.isnan()].tolist()) <= {1, 2, 3}
    capsys.readouterr()
    assert run(["list", "."]) == 0
    assert "test RMSE" in capsys.readouterr().out


def test_items_are_not_listed_as_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """There may be thousands, and no type of theirs can be overruled."""
    assert run([*TINY[:-1], "--epochs", "0", "--no-report", "--no-evaluate", "-o", "zero"]) == 0
    out = capsys.readouterr().out
    assert "ratings on stars" in out and "film 2" not in out and "Overrule" not in out


def test_it_resumes_exactly() -> None:
    flags = ["--no-report", "--no-evaluate", "--rows", "users", "--set", "run.checkpoint_updates=1"]
    assert run([*TINY, *flags, "-o", "whole"]) == 0
    assert run([*TINY, *flags, "-o", "stopped"]) == 0
    for path in Run.open("stopped").checkpoints.paths()[1:]:  # as if it had been killed before it wrote these
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    Path("stopped/model.safetensors").unlink()
    assert run(["resume", "stopped", "-q"]) == 0
    assert fingerprint(Path("stopped")) == fingerprint(Path("whole"))


def test_mistakes_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("rbm", "gaussian-rbm", "dbn", "hopfield"):
        assert run([*TINY[:3], "--model", kind, "-q"]) == 2
        assert "holds ratings data, which model" in (said := capsys.readouterr().err) and "--model ratings" in said
    assert run(["train", "--data", "digits", "--model", "ratings", "-q"]) == 2
    assert "digits holds levels data, which model 'ratings' does not take." in capsys.readouterr().err
    assert run([*TINY, "--share", "2"]) == 2
    assert "[ratings] share must be less than or equal to 1" in capsys.readouterr().err
    assert run([*TINY, "--binarize", "scale"]) == 2
    assert "[data] binarize is not for model 'ratings'" in capsys.readouterr().err


def test_movielens(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARMONIUM_DATA", str(data_dir))
    flags = ["--epochs", "1", "--n-hidden", "4", "--learning-rate", "0.01", "--threads", "1", "-q", "--no-report"]
    assert run(["train", "--data", "movielens", *flags, "-o", "films"]) == 0
    scores = json.loads(Path("films/evaluation.json").read_text())["ratings"]
    assert scores["test"]["n"] == 20_000 and 0.9 < scores["test"]["rmse"] < 1.1


def test_ratings_outside_the_scale_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A slip of the pen, 33 for 3, would else be a level of its own; a scale may hold levels that nobody gave."""
    assert run([*TINY, "--no-report", "-o", "wide", "--scale", "1, 2, 3, 4"]) == 0
    assert Run.open("wide").model().levels == (1, 2, 3, 4)
    text = Path("stars.csv").read_text()
    Path("stars.csv").write_text(text[:-1] + "33")
    assert run([*TINY, "--no-report", "-o", "slip", "--scale", "1, 2, 3"]) == 2
    assert "1 of" in (said := capsys.readouterr().err) and "are not on the scale 1, 2, 3, such as 33." in said
    assert run([*TINY, "--no-report", "-o", "text", "--scale", "3, 2"]) == 2
    assert "[ratings] scale must name at least two numbers" in capsys.readouterr().err
