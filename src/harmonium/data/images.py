"""Pictures of any size, cropped to a square and resized."""

from __future__ import annotations

import math
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from harmonium.data.extras import require
from harmonium.data.gate import walk
from harmonium.memory import check_room

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
MODES = {"L": 1, "RGB": 3}
MAX_PIXELS = 30_000_000
"""Larger pictures are refused before they are decoded, unless they can be read at a smaller size."""

_DAMAGE = (
    *(OSError, SyntaxError, ValueError, TypeError, LookupError, EOFError, ArithmeticError, AttributeError),
    *(NotImplementedError, RecursionError, MemoryError, struct.error, zlib.error),
)
"""What readers of pictures raise where a file is damaged."""


def check_target(size: int, mode: str) -> None:
    """Raise unless pictures can be made of this size and mode."""
    if size < 1:
        raise ValueError(f"`size` must be at least 1 pixel. Got {size}.")
    if mode not in MODES:
        raise ValueError(f'`mode` must be "L" (gray) or "RGB". Got {mode!r}.')


def decode_image(source: Path | IO[bytes], size: int, mode: str, name: str) -> np.ndarray:
    """Return a picture as uint8 `(channels, size, size)`: its central square, resized (bicubic, antialiased)."""
    image: Any = require("PIL.Image", "images", "reading pictures")
    operations: Any = require("PIL.ImageOps", "images", "reading pictures")
    try:
        with image.open(source) as picture:
            if math.prod(picture.size) > MAX_PIXELS:  # a JPEG can be read at an eighth of its size
                picture.draft(mode, (max(size, 1024),) * 2)
            if math.prod(picture.size) > MAX_PIXELS:
                raise ValueError(f"it has {picture.width} x {picture.height} pixels, more than {MAX_PIXELS:,}")
            upright = operations.exif_transpose(picture).convert(mode)
            side = min(upright.size)
            left, top = (upright.width - side) // 2, (upright.height - side) // 2
            square = upright.crop((left, top, left + side, top + side)).resize((size, size), image.Resampling.BICUBIC)
    except (*_DAMAGE, image.DecompressionBombError) as error:
        raise ValueError(
            f"{name} is not a readable picture ({error}). Replace it or take it out of the folder."
        ) from error
    pixels = np.asarray(square, np.uint8)
    return pixels[None] if mode == "L" else pixels.transpose(2, 0, 1)


def list_images(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the pictures of a folder and its subfolders, sorted by path."""
    folder = Path(folder)
    paths = sorted(walk(folder, lambda name: name.lower().endswith(SUFFIXES)))
    if not paths:
        raise ValueError(f"{folder} holds no pictures. Files ending in {', '.join(SUFFIXES)} are read, subfolders too.")
    return paths


def decode_images(paths: Sequence[Path], size: int, mode: str) -> Tensor:
    """Decode the pictures one by one into a tensor `(n, channels, size, size)` of uint8."""
    check_target(size, mode)
    check_room(len(paths) * MODES[mode] * size**2, f"{len(paths):,} pictures of {size} x {size} pixels")
    pixels = torch.empty(len(paths), MODES[mode], size, size, dtype=torch.uint8)
    for row, path in zip(pixels, paths, strict=True):
        row.copy_(torch.from_numpy(decode_image(path, size, mode, str(path)).copy()))
    return pixels


def read_images(folder: str | os.PathLike[str], size: int = 32, mode: str = "RGB") -> Tensor:
    """Read all pictures of a folder and its subfolders, in sorted order: uint8 `(n, channels, size, size)`."""
    return decode_images(list_images(folder), size, mode)
