"""A run knows its data: it is sampled without them, in their units, and goes on with no others."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.tiny_runs import CASES, write_cases
from harmonium.cli.entry import run as command
from harmonium.learning.monitors.health import HealthWarning
from harmonium.runs import KINDS, Run, draw, resolve, train
from harmonium.runs.atomic import sha256
from harmonium.runs.config import read_toml
from harmonium.runs.folder import DATA, DATA_TENSORS
from harmonium.runs.outline import ChangedDataError, few_rows

DRAWN = [name for name in CASES if name != "network"]  # which only classifies


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny runs of every kind, trained for an epoch, beside their data."""
    folder = tmp_path_factory.mktemp("every")
    for name, path in write_cases(folder, every=0).items():
        one: dict[str, dict[str, object]] = {"training": {"epochs": 1 if name != "dbn" else 2}}
        if name == "jem":
            one = {"training": {"epochs": 1, "learning_rate": 0.01}, "jem": {"starts": "class-gaussians"}}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HealthWarning)  # an epoch of such runs is not healthy
            train(Run.create(folder / "runs" / name, resolve(read_toml(path), one)))
    return folder


def test_every_kind_is_there(made: Path) -> None:
    assert {Run.open(path).config.model.kind for path in (made / "runs").iterdir()} == set(KINDS)


@pytest.mark.parametrize("name", DRAWN)
def test_samples_need_no_data_and_are_the_same_without_them(made: Path, name: str, tmp_path: Path) -> None:
    with_data = draw(Run.open(made / "runs" / name), 4, n_steps=3)
    shutil.copytree(made / "runs" / name, tmp_path / "run")
    text = (tmp_path / "run" / "config.toml").read_text().replace(str(made), str(tmp_path / "nowhere"))
    (tmp_path / "run" / "config.toml").write_text(text)
    moved = Run.open(tmp_path / "run")
    assert torch.equal(draw(moved, 4, n_steps=3).nan_to_num(-1), with_data.nan_to_num(-1))
    if not text.count("bars-and-stripes") and not text.count("moons") and not text.count("digits"):
        with pytest.raises(ValueError, match="neither a known data set nor an existing path"):
            moved.data()


def test_samples_keep_the_units_of_the_data_they_were_learned_from(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(1000.0, 5.0, (200, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    told = ["train", "--data", str(tmp_path / "x.npy"), "--model", "gaussian-rbm", "--epochs", "2", "--n-hidden", "2"]
    assert command([*told, "-o", str(tmp_path / "run"), "-q", "--no-report", "--no-evaluate"]) == 0
    np.save(tmp_path / "x.npy", 1000 * x)
    opened = Run.open(tmp_path / "run")
    assert draw(opened, 100, n_steps=20).mean().item() == pytest.approx(1000, abs=5)
    with pytest.raises(ChangedDataError, match="no longer the data"):
        opened.data()


@pytest.mark.parametrize("name", ["table", "ratings", "class-rbm", "gated-rbm"])
def test_a_changed_file_is_an_error_in_words(made: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = Path(Run.open(made / "runs" / name).config.data.name)
    before = data.read_bytes()
    changed = before[:-3] + bytes(3) if data.suffix == ".npy" else before + b" "
    try:
        data.write_bytes(changed)
        for word in ("resume", "evaluate", "report"):
            assert command([word, str(made / "runs" / name), "-q"]) == 2
            assert "its checksum differs" in capsys.readouterr().err
    finally:
        data.write_bytes(before)
    assert command(["resume", str(made / "runs" / name), "-q", "--epochs", "3"]) == 0


def test_known_data_of_whole_numbers_have_a_fingerprint_too(made: Path) -> None:
    opened = Run.open(made / "runs" / "pcd")
    kept = opened.kept()
    assert kept is not None and kept[0]["sha256"] == opened.prepared.sha256 is not None
    other = opened.config.data.model_copy(update={"options": {"size": 3}})
    opened = Run(opened.folder, opened.config.model_copy(update={"data": other}))
    with pytest.raises(ChangedDataError):
        opened.data()


def test_a_folder_of_pictures_has_one(tmp_path: Path) -> None:
    from PIL import Image

    for i in range(12):
        Image.fromarray(np.full((8, 8), 20 * i, np.uint8)).save(tmp_path / f"{i:02}.png")
    settings = {
        "data": {"name": str(tmp_path), "binarize": "threshold", "options": {"size": 4, "mode": "L"}},
        "model": {"n_hidden": 2},
        "training": {"epochs": 1, "n_chains": 2},
    }
    made = Run.create(tmp_path / "run", resolve(settings))
    train(made)
    assert Run.open(made.folder).data().shape == (1, 4, 4)
    Image.fromarray(np.full((8, 8), 255, np.uint8)).save(tmp_path / "07.png")
    with pytest.raises(ChangedDataError):
        Run.open(made.folder).data()


@pytest.mark.parametrize("name", [DATA, DATA_TENSORS])
def test_scales_that_were_tampered_with_are_refused(made: Path, name: str, tmp_path: Path) -> None:
    shutil.copytree(made / "runs" / "gaussian", tmp_path / "run")
    path = tmp_path / "run" / name
    if name == DATA:
        path.write_text(path.read_text().replace('"real"', '"binary"'))
    else:
        content = bytearray(path.read_bytes())
        content[-2] ^= 64
        path.write_bytes(bytes(content))
    with pytest.raises(ValueError, match="not as the run wrote it|damaged"):
        draw(Run.open(tmp_path / "run"), 2)


def test_data_of_another_run_are_refused(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "runs" / "gaussian", tmp_path / "run")
    shutil.copy(made / "runs" / "jem" / DATA_TENSORS, tmp_path / "run")
    with pytest.raises(ValueError, match="not as the run wrote it"):
        draw(Run.open(tmp_path / "run"), 2)


def test_a_table_keeps_no_rows_and_others_a_few(made: Path) -> None:
    for name, n in (("table", 0), ("subspace-rbm", 26), ("hopfield", 3)):
        kept = Run.open(made / "runs" / name).kept()
        assert kept is not None and len(kept[1]["train"]) == n
        assert kept[0]["rows"]["train"] in (3, 96, 128)


def test_few_rows_hold_the_largest_value_and_label(made: Path) -> None:
    opened = Run.open(made / "runs" / "jem")
    whole, few = opened.prepared.data, few_rows(opened.prepared, 2).data
    assert len(few.train) == 4 and few.train.abs().max() == whole.train.abs().max()
    assert few.train_labels is not None and whole.train_labels is not None
    assert few.train_labels.max() == whole.train_labels.max()


def test_the_checksum_covers_plain_values_and_tensors(made: Path) -> None:
    """A forger who mends one checksum must know of the other: data.json alone cannot be edited."""
    text = json.loads((made / "runs" / "gaussian" / DATA).read_text())
    plain = {key: value for key, value in text.items() if key != "checksum"}
    assert text["checksum"] != sha256(json.dumps(plain, sort_keys=True).encode())
