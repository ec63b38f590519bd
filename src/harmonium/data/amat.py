"""The .amat format: numbers as text, one sample a line."""

from __future__ import annotations

import bz2
import io
import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from harmonium.data.gate import check_file, read_unpacked
from harmonium.memory import check_room


def read_amat(path: str | os.PathLike[str]) -> Tensor:
    """Read an .amat file, plain or bzip2ed: one sample a line, values with spaces between.

    A file of single digits 0 and 1 (binarized MNIST) gives uint8, and is read without parsing numbers; else float32.
    """
    path = Path(path)
    check_file(path)
    with path.open("rb") as file:
        packed = file.read(3) == b"BZh"
    if packed:
        try:
            with bz2.open(path) as stream:
                raw = read_unpacked(stream, path)
        except (OSError, EOFError) as error:
            raise ValueError(f"{path} is a damaged bzip2 file ({error}). Fetch it again.") from error
    else:
        raw = path.read_bytes()
    if not raw.strip():
        raise ValueError(f"{path} holds no numbers.")
    bits = parse_bits(raw)
    check_room(len(raw) * (1 if bits is not None else 4), f"{path}")
    if bits is not None:
        return torch.from_numpy(bits)
    try:
        return torch.from_numpy(np.loadtxt(io.BytesIO(raw), dtype=np.float32, ndmin=2))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{path} is not a table of numbers with spaces between: {error}.") from error


def parse_bits(raw: bytes) -> np.ndarray | None:
    """Return the 0/1 matrix of `b"0 1 1\\n1 0 0\\n"`, or None if the text is not exactly of this form."""
    first = raw.find(b"\n")
    text = np.frombuffer(raw if raw.endswith(b"\n") else raw + b"\n", np.uint8)
    if first < 0:
        first = len(text) - 1
    width = first + 1
    if width % 2 or len(text) % width:
        return None
    lines = text.reshape(-1, width)
    digits, spaces = lines[:, ::2], lines[:, 1::2]
    if (digits & 0xFE != ord("0")).any() or (spaces[:, :-1] != ord(" ")).any() or (spaces[:, -1] != ord("\n")).any():
        return None
    return digits - np.uint8(ord("0"))
