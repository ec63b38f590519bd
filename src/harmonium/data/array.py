"""NumPy files, never pickled ones."""

from __future__ import annotations

import lzma
import math
import os
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

from harmonium.data.gate import check_file, check_unpacked

_DAMAGE = (
    *(ValueError, EOFError, OSError, TypeError, LookupError, RuntimeError, MemoryError, OverflowError, SyntaxError),
    *(RecursionError, struct.error, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tokenize.TokenError),
)
"""What NumPy and zipfile raise where a file is damaged, encrypted or packed in a way that is not known."""


def as_tensor(array: np.ndarray, path: Path, name: str = "") -> Tensor:
    """Return the array as a tensor in native byte order; text and objects are refused.

    Unsigned integers of more than 8 bits become signed ones: PyTorch hardly computes with them.
    """
    label = f"{path}{f' [{name}]' if name else ''}"
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{label} holds {array.dtype} values. Only booleans, integers and real numbers can be read.")
    if array.dtype.itemsize > 8:
        raise ValueError(f"{label} holds {array.dtype} values. Save it with at most 64 bits a value.")
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        if array.size and int(array.max()) >= 2**63:
            raise ValueError(f"{label} holds {int(array.max())}, beyond 64-bit integers with a sign. Scale it first.")
        array = array.astype(np.int64 if array.dtype.itemsize > 2 else np.int32)
    return torch.from_numpy(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="), copy=False)))


def read_array(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Read a `.npy` file as `{"x": tensor}` or a `.npz` file as its named tensors. Pickled objects are refused."""
    path = Path(path)
    size = check_file(path)
    try:
        with path.open("rb") as file:
            if file.read(2) == b"PK":
                return read_arrays(path, size)
            file.seek(0)
            check_header(file, size, path)
            file.seek(0)
            return {"x": as_tensor(np.lib.format.read_array(file, allow_pickle=False), path)}
    except _DAMAGE as error:
        if isinstance(error, ValueError) and str(error).startswith(str(path)):
            raise
        raise ValueError(
            f"{path} cannot be read as a NumPy file ({error}). Files with pickled objects are never loaded: "
            f"save numbers only, with np.save or np.savez."
        ) from error


def read_arrays(path: Path, packed: int) -> dict[str, Tensor]:
    """Read the arrays of an `.npz` file, after a look at how large they will be."""
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        check_unpacked(sum(member.file_size for member in members), packed, path)
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name in arrays:
                raise ValueError(f"{path} holds {name!r} twice.")
            with archive.open(member) as file:
                check_header(file, member.file_size, path)
            with archive.open(member) as file:
                arrays[name] = as_tensor(np.lib.format.read_array(file, allow_pickle=False), path, name)
    return arrays


def check_header(file: IO[bytes], size: int, path: Path) -> None:
    """Raise unless the header of an array tells of as many bytes as the file has, before any are made room for."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        return  # `read_array` says so
    if math.prod(shape) * dtype.itemsize > size or any(n < 0 for n in shape):
        raise ValueError(f"its header tells of shape {shape} of {dtype}, and it has {size:,} bytes")
