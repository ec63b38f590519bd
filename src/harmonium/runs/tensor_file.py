"""Tensors in a file that knows its own content: a checksum, and finite numbers only."""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from harmonium.runs.atomic import write_atomic
from harmonium.types import State

CHECKSUM = "sha256"


def write_tensors(path: Path, tensors: State, *, finite: bool = True) -> None:
    """Write tensors, atomically, with the checksum of their names, shapes and bytes in the file's own header.

    Those of a model must be `finite`; samples may have missing values.
    """
    plain = detached(tensors)
    if finite:
        check_finite(plain, path)
    write_atomic(path, save(plain, metadata={CHECKSUM: checksum(plain)}))


def read_tensors(path: Path, *, device: str = "cpu", finite: bool = True) -> State:
    """Read tensors and check that they are those that were written, and finite where they must be."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors: State = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (no mapping)
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}. Put back a whole copy, or train again.") from error
    if CHECKSUM not in metadata:
        raise ValueError(
            f"{path} has no checksum: it was not written by Harmonium, or by an older version. Train again."
        )
    if checksum(tensors) != metadata[CHECKSUM]:
        raise ValueError(f"{path} is damaged: its SHA-256 is not the one in its header. Put back a whole copy.")
    if finite:
        check_finite(tensors, path)
    return {name: value.to(device) for name, value in tensors.items()}


def check_finite(tensors: State, path: Path) -> None:
    """Raise where a number is NaN or infinite."""
    for name, value in tensors.items():
        if value.is_floating_point() and not bool(value.isfinite().all()):
            raise ValueError(f"{path}: {name!r} holds NaN or infinite values, and no model. Train again, more slowly.")


def checksum(tensors: State) -> str:
    """Return the SHA-256 of names, types, shapes and bytes.

    >>> checksum({"a": torch.zeros(2)}) == checksum({"a": torch.zeros(2, 1)})
    False
    """
    digest = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name].contiguous()
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def detached(tensors: State) -> State:
    """Return plain copies on the CPU that share no memory, as safetensors wants them."""
    return {name: value.detach().to("cpu", copy=True).contiguous() for name, value in tensors.items()}
