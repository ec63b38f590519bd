"""Data of one's own: an array, a table, an IDX or .amat file, or a folder of pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from harmonium.data.amat import read_amat
from harmonium.data.array import read_array
from harmonium.data.base import Data
from harmonium.data.idx import read_idx
from harmonium.data.images import decode_images, list_images
from harmonium.data.infer import infer_columns
from harmonium.data.split import THREE_WAYS, split_each_class, split_indices
from harmonium.data.table import encode, read_columns

READABLE = ".npy, .npz, .csv, .tsv, .parquet, .idx, *-ubyte, *-ubyte.gz, .amat, .amat.bz2, or a folder of pictures"
TABLES = (".csv", ".tsv", ".csv.gz", ".parquet", ".pq")
RANDOM = "random split 80/10/10"
LABELS = ("labels", "label", "target", "targets", "y")


def kind_of(x: Tensor) -> tuple[str, int | None, str]:
    """Return what the values are, the largest level, and words for the note."""
    missing = " (NaN: missing)" if x.is_floating_point() and bool(x.isnan().any()) else ""
    if x.is_floating_point():
        if bool(x.isinf().any()):
            raise ValueError("the data hold infinite values. Replace them, or make them NaN to treat them as missing.")
        if bool(((x == 0) | (x == 1) | x.isnan()).all()):
            return "binary", 1, f"values 0 and 1{missing}"
        return "real", None, f"values as stored, not scaled{missing}"
    if x.dtype == torch.bool or bool(((x == 0) | (x == 1)).all()):
        return "binary", 1, "values 0 and 1"
    if x.dtype == torch.uint8:
        return "levels", 255, "8-bit levels 0..255"
    if bool((x >= 0).all()):
        return "counts", None, "counts as stored"
    return "real", None, "integers as stored, not scaled"


def as_classes(name: str, labels: Tensor) -> Tensor:
    """Return labels as class numbers, or say why they are none.

    >>> as_classes("x", torch.tensor([0.0, 2.0])).tolist()
    [0, 2]
    """
    whole = labels if not labels.is_floating_point() else labels.round()
    most = max(1000, len(labels))
    if not bool((whole == labels).all()) or bool((whole < 0).any()) or bool((whole >= most).any()):
        raise ValueError(
            f"{name}: the labels must be class numbers 0, 1, 2 …, below {most:,}. Got {labels.min().item():g} to "
            f"{labels.max().item():g}. Number the classes first."
        )
    return whole.long()


def from_tensor(name: str, x: Tensor, labels: Tensor | None, *, generator: torch.Generator) -> Data:
    """Split samples `(n, …)` 80/10/10; 8-bit `(n, height, width)` become images of one channel."""
    if x.ndim < 2 or len(x) == 0:
        raise ValueError(
            f"{name} must hold samples, shape (n, …) with n > 0. Got {tuple(x.shape)}. Reshape and save it again."
        )
    kind, levels, words = kind_of(x)
    x = x[:, None] if x.dtype == torch.uint8 and x.ndim == 3 else x
    x = x.float() if kind == "real" else x.to(torch.uint8) if x.dtype == torch.bool else x
    if labels is not None and labels.shape != (len(x),):
        raise ValueError(
            f"{name}: the labels must have shape ({len(x)},), one for each sample. Got {tuple(labels.shape)}."
        )
    parts = split_indices(len(x), THREE_WAYS, generator=generator)
    classes = None if labels is None else as_classes(name, labels)
    targets = [None if classes is None else classes[part] for part in parts]
    if classes is not None and targets[0] is not None and int(targets[0].max()) < int(classes.max()):
        raise ValueError(
            f"{name}: no row of class {int(classes.max())} is among the {len(targets[0])} training rows of the random "
            "split. Give more samples of each class, or leave that one out."
        )
    return Data.of_splits(
        name,
        [x[part] for part in parts],
        targets,
        kind=kind,
        levels=levels,
        note=f"{words}; {RANDOM}",
    )


def load_array(path: Path, *, generator: torch.Generator) -> Data:
    """Load a `.npy` file, or the one array of an `.npz` file beside its labels (`labels`, `target` or `y`)."""
    arrays = read_array(path)
    labels = next((arrays.pop(key) for key in LABELS if key in arrays), None)
    if len(arrays) != 1:
        raise ValueError(
            f"{path} must hold one array of samples (any name), and may hold labels ({', '.join(LABELS)}). "
            f"Got samples {list(arrays)}. Save one of them alone."
        )
    return from_tensor(path.name, next(iter(arrays.values())), labels, generator=generator)


def load_table(path: Path, *, generator: torch.Generator, types: Mapping[str, str] | None = None) -> Data:
    """Load a table, split 80/10/10; real columns are standardized on the training split."""
    table = read_columns(path)
    n = len(next(iter(table.values()), []))
    if n == 0:
        raise ValueError(f"{path} has no rows.")
    train, valid, test = split_indices(n, THREE_WAYS, generator=generator)
    columns = infer_columns(table, types, rows=train.tolist())
    x = encode(table, columns)
    n_left_out = sum(column.width == 0 for column in columns)
    note = f"{len(columns) - n_left_out} columns, numbers on scales of the training rows; {RANDOM}"
    note += f"; {n_left_out} columns left out" if n_left_out else ""
    return Data.of_splits(path.name, [x[train], x[valid], x[test]], kind="table", columns=columns, note=note)


def load_idx(path: Path, *, generator: torch.Generator) -> Data:
    """Load an IDX file of samples."""
    return from_tensor(path.name, read_idx(path), None, generator=generator)


def load_amat(path: Path, *, generator: torch.Generator) -> Data:
    """Load an .amat file of samples."""
    return from_tensor(path.name, read_amat(path), None, generator=generator)


def load_folder(
    path: Path, *, generator: torch.Generator, size: int = 32, mode: str = "RGB", per_class: int = 0
) -> Data:
    """Load a folder of pictures; if all lie in two or more subfolders, these are the classes, in sorted order.

    `per_class` pictures of each class are drawn to learn from and all others are the test, the protocol of Caltech-101
    with 30 (Fei-Fei, Fergus and Perona 2004); a fifth of them are `valid`. With 0, all are split 80/10/10.
    """
    paths = list_images(path)
    groups = [file.relative_to(path).parts[0] if file.parent != path else "" for file in paths]
    classes = sorted(set(groups))
    labels = (
        torch.tensor([classes.index(group) for group in groups]) if len(classes) > 1 and "" not in classes else None
    )
    how = RANDOM if labels is None else f"{len(classes)} classes, each split 80/10/10 at random"
    if per_class:
        if labels is None:
            raise ValueError(
                f"`per_class` needs a folder with a folder of pictures for each class. Got {path} with "
                f"{'one class' if '' not in classes else 'pictures beside its folders'}. Sort them, or leave it out."
            )
        check_classes(labels, classes, per_class)
        parts = split_each_class(labels, per_class, generator=generator)
        how = f"{len(classes)} classes, {per_class} pictures of each to learn from (a fifth of them valid), others test"
    else:
        parts = split_indices(len(paths), THREE_WAYS, labels=labels, generator=generator)
    x = decode_images(paths, size, mode)
    targets = [None if labels is None else labels[part] for part in parts]
    note = f"8-bit levels 0..255, central square resized to {size}x{size}; {how}"
    name = path.resolve().name
    return Data.of_splits(name, [x[part] for part in parts], targets, kind="levels", levels=255, note=note)


def check_classes(labels: Tensor, classes: Sequence[str], per_class: int) -> None:
    """Raise unless each class has pictures to learn from, to choose by and to test with."""
    if per_class < 2:
        raise ValueError(f"`per_class` must be at least 2, one to learn from and one to choose by. Got {per_class}.")
    sizes = labels.bincount()
    if int(sizes.min()) <= per_class:
        name, n = classes[int(sizes.argmin())], int(sizes.min())
        raise ValueError(
            f"Every class needs more than `per_class` = {per_class} pictures, to leave some for the test. Class "
            f"{name!r} has {n}. Take it out of the folder, or learn from fewer."
        )
