"""The IDX format of MNIST."""

from __future__ import annotations

import gzip
import math
import os
import zlib
from pathlib import Path
from typing import IO, cast

import numpy as np
import torch
from torch import Tensor

from harmonium.data.gate import CHUNK, check_file, check_unpacked

DTYPES: dict[int, str] = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MAX_AXES = 16


def read_exactly(file: IO[bytes], n: int) -> bytes:
    """Read n bytes, or as many as there are, without trusting n for an allocation."""
    parts = []
    while n > 0 and (part := file.read(min(n, CHUNK))):
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def read_idx(path: str | os.PathLike[str]) -> Tensor:
    """Read an IDX file, plain or gzipped: two zero bytes, a type code (8 uint8, 9 int8, 11 int16, 12 int32, 13 float32,
    14 float64), the number of axes, each length as a big-endian 32-bit integer, then the values, big-endian
    (LeCun, Cortes and Burges 1998)."""
    path = Path(path)
    packed_size = check_file(path)
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        try:
            file: IO[bytes] = cast(IO[bytes], gzip.GzipFile(fileobj=raw)) if packed else raw
            return parse(file, path, packed_size if packed else None)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} is a damaged gzip file ({error}). Fetch it again.") from error


def parse(file: IO[bytes], path: Path, packed: int | None = None) -> Tensor:
    """Parse an open IDX stream, that of a packed file of so many bytes if it is one."""
    head = read_exactly(file, 4)
    if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in DTYPES:
        raise ValueError(
            f"{path} is not an IDX file: it must begin with two zero bytes, a type code of {sorted(DTYPES)} and the "
            f"number of axes. Got the bytes {head.hex(' ') or '(empty file)'}."
        )
    if head[3] > MAX_AXES:
        raise ValueError(f"{path} is not an IDX file of data: it has {head[3]} axes, more than {MAX_AXES}.")
    lengths = read_exactly(file, 4 * head[3])
    if head[3] == 0 or len(lengths) < 4 * head[3]:
        raise ValueError(f"{path} is a truncated IDX file: its header must hold {head[3]} lengths. Fetch it again.")
    shape = tuple(np.frombuffer(lengths, ">u4").tolist())
    dtype = np.dtype(DTYPES[head[2]])
    size = math.prod(shape) * dtype.itemsize
    if packed is not None:
        check_unpacked(size, packed, path)
    body = read_exactly(file, size + 1)
    if len(body) != size:
        got = f"only {len(body)}: it is truncated" if len(body) < size else "more"
        raise ValueError(
            f"{path}: an IDX file of shape {shape} must hold {size} bytes of values. Got {got}. Fetch it again."
        )
    values = np.frombuffer(body, dtype).reshape(shape).astype(dtype.newbyteorder("="))
    return torch.from_numpy(values)
