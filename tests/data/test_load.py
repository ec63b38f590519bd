"""Loading by name: what is missing, what is damaged, what is random, and the real sets where they are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from harmonium.data import DATASETS, EMBEDDED, Data, MissingExtraError, load, options_of, split, split_indices
from harmonium.data.checksums import SHA256, sha256


@pytest.mark.parametrize("name", EMBEDDED)
def test_embedded_sets_need_no_directory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARMONIUM_DATA", raising=False)
    data = load(name)
    assert data.name == name and data.note and str(data).startswith(f"{name}: ")
    assert data.train.shape[1:] == data.shape
    assert torch.equal(data.train, load(name).train)


@pytest.mark.parametrize("name", [name for name in DATASETS if name not in EMBEDDED])
def test_a_missing_file_says_which_and_where(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARMONIUM_DATA", raising=False)
    with pytest.raises(ValueError, match=r"put it at <data-dir>/\S+.*No data directory is chosen") as raised:
        load(name)
    assert "HARMONIUM_DATA" in str(raised.value) and "--data-dir" in str(raised.value)
    relative = str(raised.value).partition("<data-dir>/")[2].split(" or ")[0].split(". ")[0]
    assert relative in SHA256
    with pytest.raises(FileNotFoundError, match="does not hold it"):
        load(name, data_dir=tmp_path)
    monkeypatch.setenv("HARMONIUM_DATA", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load(name)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mnist").mkdir()
    path = tmp_path / "mnist" / "train-images-idx3-ubyte.gz"
    path.write_bytes(b"damaged")
    with pytest.raises(ValueError, match="fetch it again") as raised:
        load("mnist", data_dir=tmp_path)
    assert all(part in str(raised.value) for part in (str(path), SHA256["mnist/" + path.name], sha256(path)))


def test_sha256_of_known_bytes(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert all(len(value) == 64 for value in SHA256.values())


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingExtraError, match=r'pip install "harmonium\[sklearn\]"'):
        load("digits")


def test_unknown_names_and_options(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="neither a known data set nor an existing path"):
        load("mnits")
    with pytest.raises(TypeError, match="does not take size. It takes n_samples, noise"):
        load("moons", size=3)
    (tmp_path / "x.doc").write_text("")
    with pytest.raises(ValueError, match="Readable are .npy"):
        load(tmp_path / "x.doc")
    assert options_of(DATASETS["ising"])["size"] == 4


def test_digits_are_split_by_class(generator: torch.Generator) -> None:
    data = load("digits", generator=generator)
    assert data.levels == 16 and data.kind == "levels" and int(data.train.max()) == 16
    assert data.valid is not None and data.test is not None and data.test_labels is not None
    assert len(data.train) + len(data.valid) + len(data.test) == 1797
    shares = torch.bincount(data.test_labels).double() / len(data.test_labels)
    assert float((shares - 0.1).abs().max()) < 0.01
    other = load("digits", generator=torch.Generator().manual_seed(12))
    assert not torch.equal(data.test, other.test)


@pytest.mark.parametrize("how", ["threshold", "sample", "resample"])
def test_binarization_is_explicit(how: str) -> None:
    data = load("digits", binarize=how)
    plain = load("digits")
    assert data.kind == "binary" and data.levels == 1 and "binarized" in data.note and "16" in data.note
    assert data.test is not None and set(data.test.unique().tolist()) == {0, 1}
    if how == "resample":
        assert torch.equal(data.train, plain.train) and data.transform is not None
        batch = data.transform(data.train[:50], generator=torch.Generator().manual_seed(0))
        assert set(batch.unique().tolist()) == {0.0, 1.0} and batch.shape == (50, 1, 8, 8)
    else:
        assert data.transform is None and set(data.train.unique().tolist()) == {0, 1}
    if how == "threshold":
        assert torch.equal(data.train, (plain.train > 8).to(torch.uint8))


def test_binarization_errors() -> None:
    with pytest.raises(ValueError, match='must be "threshold"'):
        load("digits", binarize="round")
    with pytest.raises(ValueError, match="is for images with levels"):
        load("moons", binarize="threshold")


def test_split_is_a_partition(generator: torch.Generator) -> None:
    parts = split(torch.arange(101), (0.8, 0.1, 0.1), generator=generator)
    assert [len(part) for part in parts] == [81, 10, 10]
    assert torch.cat(parts).sort().values.tolist() == list(range(101))
    assert torch.cat(parts).tolist() != list(range(101))
    labels = torch.arange(100) % 4
    train, test = split_indices(100, (0.8, 0.2), labels=labels, generator=generator)
    assert torch.bincount(labels[train]).tolist() == [20] * 4 and torch.bincount(labels[test]).tolist() == [5] * 4
    with pytest.raises(ValueError, match="sum to 1"):
        split(torch.arange(4), (0.5, 0.4))


def test_data_checks_itself() -> None:
    with pytest.raises(ValueError, match="`kind` must be one of"):
        Data("x", torch.zeros(2, 3), None, None, shape=(3,), kind="image")
    with pytest.raises(ValueError, match=r"`train` of x must have shape \(n, 4\)"):
        Data("x", torch.zeros(2, 3), None, None, shape=(4,))
    with pytest.raises(ValueError, match="one label for each sample"):
        Data("x", torch.zeros(2, 3), None, None, torch.zeros(3), shape=(3,))
    with pytest.raises(ValueError, match="must have training samples"):
        Data.of_splits("x", (torch.zeros(0, 3), None, None), kind="real", note="")


def test_few_samples_leave_valid_and_test_empty(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("v\n0.5\n1.5\n2.5\n")
    data = load(tmp_path / "x.csv")
    assert len(data.train) == 3 and data.valid is None and data.test is None


# --- the real sets ---------------------------------------------------------------------------------------------------
def test_mnist(data_dir: Path) -> None:
    data = load("mnist", data_dir=data_dir)
    assert data.valid_labels is not None and data.train_labels is not None and data.test_labels is not None
    assert (len(data.train), len(data.valid_labels), len(data.test_labels)) == (50_000, 10_000, 10_000)
    train = torch.bincount(torch.cat([data.train_labels, data.valid_labels]))
    assert train.tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert torch.bincount(data.test_labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    with pytest.raises(ValueError, match="`n_valid` must be in"):
        load("mnist", data_dir=data_dir, n_valid=60_000)


def test_fashion_mnist(data_dir: Path) -> None:
    data = load("fashion-mnist", data_dir=data_dir, n_valid=0)
    assert data.valid is None and data.train_labels is not None
    assert torch.bincount(data.train_labels).tolist() == [6000] * 10
    x = data.train.double() / 255
    assert float(x.mean()) == pytest.approx(0.28604, abs=5e-6)
    assert float(x.std()) == pytest.approx(0.35302, abs=5e-6)


def test_binarized_mnist(data_dir: Path) -> None:
    data = load("binarized-mnist", data_dir=data_dir)
    assert data.valid is not None and data.test is not None and data.kind == "binary"
    assert (len(data.train), len(data.valid), len(data.test)) == (50_000, 10_000, 10_000)
    assert set(data.train.unique().tolist()) == {0, 1}


def test_cifar10(data_dir: Path) -> None:
    data = load("cifar10", data_dir=data_dir, n_valid=0)
    assert data.shape == (3, 32, 32) and data.test is not None and len(data.test) == 10_000
    counts = torch.stack([torch.bincount(channel.flatten(), minlength=256) for channel in data.train.unbind(1)])
    levels = torch.arange(256, dtype=torch.float64) / 255
    weights = counts.double() / counts.sum(1, keepdim=True)
    mean = weights @ levels
    std = (weights @ levels.square() - mean.square()).sqrt()
    assert mean.tolist() == pytest.approx([0.49139968, 0.48215841, 0.44653091], abs=5e-9)
    assert std.tolist() == pytest.approx([0.24703223, 0.24348513, 0.26158784], abs=5e-9)
    assert data.train_labels is not None and torch.bincount(data.train_labels).tolist() == [5000] * 10


@pytest.mark.slow
def test_celeba(data_dir: Path) -> None:
    data = load("celeba", data_dir=data_dir, size=16)
    assert data.valid is not None and data.test is not None
    assert (len(data.train), len(data.valid), len(data.test)) == (9_000, 500, 500)
    assert data.shape == (3, 16, 16) and 60 < float(data.train.float().mean()) < 190


def test_gray_faces(data_dir: Path) -> None:
    olivetti = load("olivetti", data_dir=data_dir)
    assert olivetti.shape == (1, 64, 64) and olivetti.train_labels is not None
    assert torch.bincount(olivetti.train_labels).tolist() == [8] * 40
    for name, shape, n in (("frey", (1, 28, 20), 1965), ("cbcl", (1, 19, 19), 2429)):
        data = load(name, data_dir=data_dir)
        assert data.valid is not None and data.test is not None and data.shape == shape
        assert len(data.train) + len(data.valid) + len(data.test) == n


def test_newsgroups(data_dir: Path) -> None:
    data = load("newsgroups", data_dir=data_dir)
    labels = torch.cat([data.train_labels, data.valid_labels, data.test_labels])  # type: ignore[list-item]
    assert torch.bincount(labels).tolist() == [4605, 3519, 2657, 5461]
    assert data.kind == "binary" and data.columns[0].name == "aids" and len(data.columns) == 100
    counts = load("newsgroups-counts", data_dir=data_dir)
    assert counts.kind == "counts" and counts.test is not None and len(counts.test) == 7_489
    assert counts.train_labels is not None and int(counts.train_labels.max()) == 19


def test_movielens(data_dir: Path) -> None:
    data = load("movielens", data_dir=data_dir)
    parts = [x[~x.isnan()] for x in (data.train, data.valid, data.test) if x is not None]
    assert [len(part) for part in parts] == [72_000, 8_000, 20_000] and data.train.shape == (943, 1682)
    assert float(torch.cat(parts).double().mean()) == pytest.approx(3.52986, abs=5e-6)
    assert (
        data.test is not None
        and data.test[0, 5] == 5
        and data.columns[5].name == "Shanghai Triad (Yao a yao yao dao waipo qiao) (1995)"
    )
    assert load("movielens", data_dir=data_dir, valid=0.0).valid is None
