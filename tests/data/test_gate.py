"""The gate: a budget of memory before anything is unpacked, plain files only, folders not without end."""

from __future__ import annotations

import bz2
import gzip
import os
from pathlib import Path

import numpy as np
import pytest

import harmonium as hm
from benchmarks.hostile.files import bomb, header, idx, parquet_of, png_of, zipped
from harmonium.data import gate, load, read_amat, read_array, read_idx, read_images
from harmonium.memory import available_bytes, check_room


@pytest.fixture(autouse=True)
def _small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(gate.VARIABLE, str(2**20))


WIDE = "{'descr': '|u1', 'fortran_order': False, 'shape': (2097152, 4), }"
BOMBS = {
    "x.amat.bz2": bomb(bz2.compress, b"0 1 0 1\n", 8),
    "x.csv.gz": bomb(gzip.compress, b"1,2\n", 8),
    "x-ubyte.gz": gzip.compress(idx(8, (8, 1024, 1024), b"")) + bomb(gzip.compress, b"\0", 8),
    "x.npz": zipped(x=header(WIDE, bytes(2**23))),
    "x.parquet": parquet_of({"x": np.zeros(2**20, np.int8)}, compression="zstd"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_that_unpacks_to_more_than_its_budget_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(BOMBS[name])
    with pytest.raises(ValueError, match=r"would take .* HARMONIUM_MAX_BYTES"):
        load(path)


@pytest.mark.parametrize("name", ["x.amat.bz2", "x-ubyte.gz", "x.npz"])
def test_a_larger_budget_lets_it_pass(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: the files themselves are whole."""
    monkeypatch.setenv(gate.VARIABLE, str(2**28))
    path = tmp_path / name
    path.write_bytes(BOMBS[name])
    reader = {"x.amat.bz2": read_amat, "x-ubyte.gz": read_idx, "x.npz": read_array}[name]
    assert reader(path) is not None


def test_a_picture_is_measured_before_it_is_decoded(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(png_of(10_000, 4000))
    with pytest.raises(ValueError, match=r"10000 x 4000 pixels"):
        read_images(tmp_path)


@pytest.mark.parametrize("shape", ["(10**12,)", "(2**70, 2)", "(1000000, 1000)"])
def test_an_array_that_lies_about_its_size_is_refused(shape: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}", bytes(100)))
    with pytest.raises(ValueError, match="cannot be read as a NumPy file"):
        read_array(path)


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".idx", ".amat", ".parquet"])
def test_pipes_and_devices_are_not_waited_for(suffix: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"pipe{suffix}")
    (tmp_path / f"zero{suffix}").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(ValueError, match="not a plain file"):
            load(tmp_path / f"{name}{suffix}")


def test_a_folder_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "MAX_ENTRIES", 5)
    for i in range(6):
        (tmp_path / f"{i}.txt").touch()
    with pytest.raises(ValueError, match="holds more than 5 files"):
        read_images(tmp_path)


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    with pytest.raises(ValueError, match="holds no pictures"):
        read_images(tmp_path)


@pytest.mark.parametrize(("kind", "dtype"), [("u2", "int32"), ("u4", "int64"), ("u8", "int64")])
def test_unsigned_integers_become_signed(kind: str, dtype: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(6, dtype=kind).reshape(2, 3))
    assert str(read_array(tmp_path / "x.npy")["x"].dtype) == f"torch.{dtype}"
    np.save(tmp_path / "x.npy", np.full((2, 3), 2**64 - 1, "u8"))
    with pytest.raises(ValueError, match="beyond 64-bit"):
        read_array(tmp_path / "x.npy")


def test_a_model_is_estimated_before_it_is_built() -> None:
    with pytest.raises(ValueError, match=r"needs about 3,136,000 GB of memory"):
        hm.RBM(hm.Bernoulli(784), hm.Bernoulli(10**12))
    there = available_bytes()
    assert there is None or there > 2**20
    check_room(2**20, "A megabyte")
