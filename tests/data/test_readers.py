"""Every reader on tiny files: round trips, and files that are wrong."""

from __future__ import annotations

import bz2
import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from harmonium.data import load, read_amat, read_array, read_cifar, read_idx, read_images
from harmonium.data.idx import DTYPES


def write_idx(path: Path, array: np.ndarray, *, code: int = 8, packed: bool = False) -> bytes:
    raw = bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    raw += array.astype(DTYPES[code]).tobytes()
    path.write_bytes(gzip.compress(raw) if packed else raw)
    return raw


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("code", sorted(DTYPES))
def test_idx_round_trip(tmp_path: Path, code: int, packed: bool) -> None:
    array = np.arange(2 * 3 * 4).reshape(2, 3, 4).astype(np.dtype(DTYPES[code]).newbyteorder("="))
    write_idx(tmp_path / "x.idx", array, code=code, packed=packed)
    x = read_idx(tmp_path / "x.idx")
    assert torch.equal(x, torch.from_numpy(array)) and x.dtype == torch.from_numpy(array).dtype


def test_idx_malformed(tmp_path: Path) -> None:
    path = tmp_path / "x-ubyte"
    raw = write_idx(path, np.zeros((2, 3), np.uint8))
    for text, content in [
        ("truncated", raw[:-1]),
        ("Got more", raw + b"\0"),
        ("must hold 2 lengths", raw[:8]),
        ("not an IDX file", b"\1" + raw[1:]),
        ("not an IDX file", bytes([0, 0, 0x0A, 1]) + raw[4:]),
        (r"\(empty file\)", b""),
        ("truncated", raw[:4] + b"\xff" * 8 + raw[12:]),
        ("damaged gzip", gzip.compress(raw)[:-6]),
    ]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=text):
            read_idx(path)


def test_idx_by_path(tmp_path: Path) -> None:
    write_idx(tmp_path / "some-images-ubyte.gz", np.arange(20 * 2 * 2).reshape(20, 2, 2), packed=True)
    data = load(tmp_path / "some-images-ubyte.gz")
    assert data.shape == (1, 2, 2) and data.levels == 255 and len(data.train) == 16


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("newline", ["\n", ""])
def test_amat_bits(tmp_path: Path, packed: bool, newline: str) -> None:
    raw = ("0 1 1\n1 0 0" + newline).encode()
    path = tmp_path / "x.amat"
    path.write_bytes(bz2.compress(raw) if packed else raw)
    x = read_amat(path)
    assert x.dtype == torch.uint8 and x.tolist() == [[0, 1, 1], [1, 0, 0]]


def test_amat_numbers_and_malformed(tmp_path: Path) -> None:
    path = tmp_path / "x.amat"
    path.write_text("0.5 1\n2 -3\n")
    assert read_amat(path).tolist() == [[0.5, 1.0], [2.0, -3.0]]
    for text, content in [
        ("not a table of numbers", b"0 1\n1\n"),
        ("not a table of numbers", b"a b\n"),
        ("holds no numbers", b"\n"),
        ("damaged bzip2", bz2.compress(b"0 1\n" * 100)[:-4]),
        ("damaged bzip2", b"BZh9 nothing"),
    ]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=text):
            read_amat(path)
    with pytest.raises(FileNotFoundError):
        read_amat(tmp_path / "none.amat")


def test_array_round_trip(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(6, dtype=">f4").reshape(2, 3))
    assert read_array(tmp_path / "x.npy")["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    np.savez(tmp_path / "x.npz", images=np.ones((20, 2), np.uint8) * 7, target=np.arange(20))
    assert set(read_array(tmp_path / "x.npz")) == {"images", "target"}
    data = load(tmp_path / "x.npz")
    assert data.kind == "levels" and data.train_labels is not None and data.train_labels.dtype == torch.int64
    labels = torch.cat([data.train_labels, data.valid_labels, data.test_labels])  # type: ignore[list-item]
    assert sorted(labels.tolist()) == list(range(20))


def test_pickled_and_broken_arrays_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="pickled objects are never loaded"):
        read_array(tmp_path / "x.npy")
    np.save(tmp_path / "t.npy", np.array(["a", "b"]))
    with pytest.raises(ValueError, match="Only booleans, integers and real numbers"):
        read_array(tmp_path / "t.npy")
    (tmp_path / "b.npz").write_bytes(b"PK\x03\x04 not a zip")
    with pytest.raises(ValueError, match="cannot be read as a NumPy file"):
        read_array(tmp_path / "b.npz")
    np.savez(tmp_path / "two.npz", a=np.ones((3, 2)), b=np.ones((3, 2)))
    with pytest.raises(ValueError, match="must hold one array"):
        load(tmp_path / "two.npz")
    np.save(tmp_path / "flat.npy", np.ones(5))
    with pytest.raises(ValueError, match=r"shape \(n, …\)"):
        load(tmp_path / "flat.npy")


@pytest.mark.parametrize(
    ("array", "kind", "levels"),
    [
        (np.array([[0, 1]] * 10, np.int64), "binary", 1),
        (np.array([[False, True]] * 10), "binary", 1),
        (np.array([[0.0, 1.0]] * 10), "binary", 1),
        (np.array([[0, 200]] * 10, np.uint8), "levels", 255),
        (np.array([[0, 200]] * 10, np.int32), "counts", None),
        (np.array([[0, -2]] * 10, np.int32), "real", None),
        (np.array([[0.5, np.nan]] * 10), "real", None),
    ],
)
def test_kind_of_an_array(tmp_path: Path, array: np.ndarray, kind: str, levels: int | None) -> None:
    np.save(tmp_path / "x.npy", array)
    data = load(str(tmp_path / "x.npy"))
    assert (data.kind, data.levels, data.shape) == (kind, levels, (2,))


def test_infinite_values_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[np.inf, 1.0]]))
    with pytest.raises(ValueError, match="infinite"):
        load(tmp_path / "x.npy")


def write_cifar(folder: Path, n: int = 3) -> dict[str, np.ndarray]:
    batches = {}
    for i, name in enumerate([f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]):
        rows = (np.arange(n * 3073).reshape(n, 3073) * (i + 1) % 251).astype(np.uint8)
        rows[:, 0] = np.arange(n)
        rows.tofile(folder / f"{name}.bin")
        batches[name] = rows
    return batches


def test_cifar_batches(tmp_path: Path) -> None:
    batches = write_cifar(tmp_path)
    train, labels, test, test_labels = read_cifar(tmp_path)
    assert train.shape == (15, 3, 32, 32) and test.shape == (3, 3, 32, 32)
    assert labels.tolist() == [0, 1, 2] * 5 and test_labels.tolist() == [0, 1, 2]
    assert train[4, 1, 2, 3] == batches["data_batch_2"][1, 1 + 1024 + 2 * 32 + 3]
    raw = (tmp_path / "test_batch.bin").read_bytes()
    (tmp_path / "test_batch.bin").write_bytes(raw[:-1])
    with pytest.raises(ValueError, match="rows of 3073 bytes"):
        read_cifar(tmp_path)
    (tmp_path / "test_batch.bin").write_bytes(b"\x0a" + raw[1:])
    with pytest.raises(ValueError, match=r"must be in 0\.\.9"):
        read_cifar(tmp_path)


def test_cifar_sheet_of_the_wrong_size(tmp_path: Path) -> None:
    Image.new("RGB", (64, 32)).save(tmp_path / "data_batch_1.webp", lossless=True)
    with pytest.raises(ValueError, match="sheet of 3200 x 3200"):
        read_cifar(tmp_path)


def test_images_of_any_size(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    wide = np.zeros((10, 30, 3), np.uint8)
    wide[:, 10:20] = (200, 100, 50)  # the central square
    Image.fromarray(wide).save(tmp_path / "a" / "wide.png")
    Image.new("L", (5, 9), 77).save(tmp_path / "b" / "tall.bmp")
    (tmp_path / "b" / "notes.txt").write_text("not a picture")
    x = read_images(tmp_path, size=4)
    assert x.shape == (2, 3, 4, 4) and x.dtype == torch.uint8
    assert x[0, :, 2, 2].tolist() == [200, 100, 50] and x[0].unique().tolist() == [50, 100, 200]
    assert x[1].unique().tolist() == [77]
    assert read_images(tmp_path, size=4, mode="L").shape == (2, 1, 4, 4)
    assert load(tmp_path, size=4).shape == (3, 4, 4)


def test_subfolders_are_classes(tmp_path: Path) -> None:
    for label, value in (("cats", 10), ("dogs", 200)):
        (tmp_path / label).mkdir()
        for i in range(10):
            Image.new("L", (4, 4), value).save(tmp_path / label / f"{i}.png")
    data = load(tmp_path, size=2, mode="L")
    assert data.train_labels is not None and len(data.train) == 16
    assert torch.equal(data.train[:, 0, 0, 0] > 100, data.train_labels == 1)


def write_classes(folder: Path, sizes: dict[str, int]) -> None:
    """Pictures of one gray value each: the class times 50 and the number of the picture."""
    for label, (name, n) in enumerate(sizes.items()):
        (folder / name).mkdir()
        for i in range(n):
            Image.new("L", (4, 4), 50 * label + i).save(folder / name / f"{i}.png")


def test_so_many_pictures_of_each_class(tmp_path: Path) -> None:
    """The protocol of Caltech-101: n pictures of each class to learn from, the others to test, however many."""
    write_classes(tmp_path, {"ants": 12, "beavers": 16, "crabs": 31})
    data = load(tmp_path, size=2, mode="L", per_class=10)
    splits = [(data.train, data.train_labels), (data.valid, data.valid_labels), (data.test, data.test_labels)]
    counts = []
    for x, labels in splits:
        assert x is not None and labels is not None
        assert torch.equal(x[:, 0, 0, 0].long() // 50, labels)
        counts.append(labels.bincount().tolist())
    assert counts == [[8, 8, 8], [2, 2, 2], [2, 6, 21]]
    values = torch.cat([x[:, 0, 0, 0] for x, _ in splits if x is not None])
    assert len(values.unique()) == 12 + 16 + 31  # each picture once
    assert "3 classes, 10 pictures of each" in str(data)
    assert data.train_labels is not None and not torch.equal(data.train_labels, data.train_labels.sort().values)
    other = load(tmp_path, size=2, mode="L", per_class=10, generator=torch.Generator().manual_seed(1))
    assert not torch.equal(other.train, data.train)


def test_classes_that_are_too_small_are_told(tmp_path: Path) -> None:
    write_classes(tmp_path, {"ants": 12, "beavers": 16})
    with pytest.raises(ValueError, match="more than `per_class` = 12 pictures.*'ants' has 12"):
        load(tmp_path, size=2, per_class=12)
    with pytest.raises(ValueError, match="at least 2"):
        load(tmp_path, size=2, per_class=1)
    with pytest.raises(ValueError, match="a folder of pictures for each class"):
        load(tmp_path / "ants", size=2, per_class=5)


def test_bad_images(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no pictures"):
        read_images(tmp_path)
    Image.new("L", (40, 40), 3).save(tmp_path / "x.png")
    with pytest.raises(ValueError, match="`mode` must be"):
        read_images(tmp_path, mode="CMYK")
    raw = (tmp_path / "x.png").read_bytes()
    (tmp_path / "x.png").write_bytes(raw[: len(raw) // 2])
    with pytest.raises(ValueError, match="not a readable picture"):
        read_images(tmp_path)
