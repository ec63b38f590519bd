"""What a run keeps of its data, so that it can be used without them: scales, columns, a few rows, a fingerprint."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from harmonium.data import DATASETS, Column, Data
from harmonium.data.checksums import sha256
from harmonium.data.images import list_images
from harmonium.runs.settings import DataSection
from harmonium.runs.values import SPLITS, Prepared
from harmonium.types import State

N_ROWS, N_POINTS = 24, 512
"""How many training and test samples a run keeps unless its kind needs others; and how many points in the plane."""

_PARTS = tuple(name for split in SPLITS for name in (split, f"{split}_labels"))


class ChangedDataError(ValueError):
    """The data are no longer those that the run was trained on."""


def few_rows(prepared: Prepared, n_train: int | None = None, n_test: int | None = None) -> Prepared:
    """Return the data with their first samples only, and those of the largest value and label: all that a model is
    built from, before its parameters are read, and what it is shown on."""
    data = prepared.data
    some = N_POINTS if tuple(data.shape) == (2,) else N_ROWS
    n_train, n_test = some if n_train is None else n_train, some if n_test is None else n_test
    chosen = torch.arange(min(n_train, len(data.train)))
    if 0 < len(chosen) < len(data.train):
        chosen = torch.cat([chosen, _largest(data.train)[None]])
        if data.train_labels is not None:
            chosen = torch.cat([chosen, data.train_labels.argmax()[None]])
    rows = data.train[chosen]
    if data.transform is not None:
        rows = data.transform(rows, generator=torch.Generator().manual_seed(0))
    labels, test, test_labels = data.train_labels, data.test, data.test_labels
    few = dataclasses.replace(
        data,
        train=rows,
        valid=None,
        test=None if test is None or not n_test else test[:n_test],
        train_labels=None if labels is None else labels[chosen],
        valid_labels=None,
        test_labels=None if test_labels is None or not n_test else test_labels[:n_test],
        transform=None,
    )
    return dataclasses.replace(prepared, data=few)


def _largest(x: Tensor) -> Tensor:
    """Return the number of the sample with the largest value, by its size where they are real."""
    flat = x.flatten(1)
    if not x.is_floating_point():
        return flat.amax(1).argmax()
    return torch.linalg.vector_norm(flat, torch.inf, 1).nan_to_num(-1.0).argmax()


def as_kept(outline: Prepared, n_rows: Mapping[str, int]) -> tuple[dict[str, Any], State]:
    """Return an outline as plain values and tensors, beside the numbers of rows of the whole data."""
    data = outline.data
    plain = {
        "name": data.name,
        "note": data.note,
        "kind": data.kind,
        "levels": data.levels,
        "shape": list(data.shape),
        "sha256": outline.sha256,
        "rows": dict(n_rows),
        "columns": [column.to_dict() for column in data.columns],
    }
    parts = {name: getattr(data, name) for name in _PARTS} | {"mean": outline.mean, "std": outline.std}
    tensors = {name: value for name, value in parts.items() if value is not None}
    return plain, tensors | {f"kept.{name}": value for name, value in outline.kept.items()}


def recalled(plain: Mapping[str, Any], tensors: State) -> Prepared:
    """Return the outline that `as_kept` made these of."""
    data = Data(
        plain["name"],
        shape=tuple(plain["shape"]),
        kind=plain["kind"],
        levels=plain["levels"],
        columns=tuple(Column.from_dict(column) for column in plain["columns"]),
        note=plain["note"],
        **{name: tensors.get(name) for name in _PARTS},  # type: ignore[arg-type]
    )
    kept = {name.removeprefix("kept."): value for name, value in tensors.items() if name.startswith("kept.")}
    return Prepared(data, tensors.get("mean"), tensors.get("std"), kept, plain["sha256"])


def digest_of_path(section: DataSection) -> str | None:
    """Return the SHA-256 of a file, or of the names and bytes of a folder of pictures; None for a known name."""
    path = Path(section.name).expanduser()
    if section.name in DATASETS or not path.exists():
        return None
    if path.is_file():
        return sha256(path)
    sums = {str(image.relative_to(path)): sha256(image) for image in list_images(path)}
    return hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()


def digest_of_values(data: Data) -> str | None:
    """Return the SHA-256 of whole numbers, by split; None of real ones, whose last bits are those of a processor."""
    if data.train.is_floating_point():
        return None
    digest = hashlib.sha256()
    for name in _PARTS:
        x: Tensor | None = getattr(data, name)
        if x is not None:
            digest.update(f"{name} {x.dtype} {tuple(x.shape)}\n".encode())
            digest.update(x.contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def check_same(name: str, now: str | None, then: str | None) -> None:
    """Raise if two fingerprints of the data differ; None is not known."""
    if now is not None and then is not None and now != then:
        raise ChangedDataError(
            f"{name} is no longer the data that the run was trained on: its checksum differs. Put the old data back, "
            "or say where they are with --data-dir; sample, impute, score and transform work without them."
        )
