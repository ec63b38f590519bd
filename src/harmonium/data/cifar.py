"""CIFAR-10: the official binary batches, or sheets of lossless WebP."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from harmonium.data.extras import require

BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
ROW = 1 + 3 * 32 * 32
TILES = 100


def is_packed(folder: Path) -> bool:
    """Say whether the folder holds WebP sheets rather than the binary batches."""
    return not (folder / f"{BATCHES[0]}.bin").is_file() and (folder / f"{BATCHES[0]}.webp").is_file()


def read_batch(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read a binary batch: rows of a label byte and 3072 pixels, by channel, row and column (Krizhevsky 2009)."""
    raw = np.fromfile(path, np.uint8)
    if len(raw) == 0 or len(raw) % ROW:
        raise ValueError(
            f"{path} must hold rows of {ROW} bytes. Got {len(raw)} bytes: it is truncated. Fetch it again."
        )
    rows = raw.reshape(-1, ROW)
    return rows[:, 1:].reshape(-1, 3, 32, 32), rows[:, 0]


def read_sheet(path: Path) -> np.ndarray:
    """Read a sheet of 100 x 100 tiles of 32 x 32 RGB pixels, in the order of the batch."""
    image = require("PIL.Image", "images", "reading WebP sheets")
    try:
        with image.open(path) as picture:
            sheet = np.asarray(picture.convert("RGB"))
    except OSError as error:
        raise ValueError(f"{path} is not a readable image ({error}). Fetch it again.") from error
    if sheet.shape != (32 * TILES, 32 * TILES, 3):
        raise ValueError(f"{path} must be a sheet of {32 * TILES} x {32 * TILES} pixels. Got {sheet.shape[1::-1]}.")
    return sheet.reshape(TILES, 32, TILES, 32, 3).transpose(0, 2, 4, 1, 3).reshape(TILES**2, 3, 32, 32)


def read_cifar(folder: str | os.PathLike[str]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Read CIFAR-10 from a folder: train images `(n, 3, 32, 32)` uint8, train labels, test images, test labels.

    The folder holds the official `data_batch_1.bin` … `data_batch_5.bin`, `test_batch.bin`, or else a sheet
    `data_batch_1.webp` … for each, 100 x 100 tiles without loss, and the labels in order as bytes of `labels.bin`.
    """
    folder = Path(folder)
    if is_packed(folder):
        images = [read_sheet(folder / f"{name}.webp") for name in BATCHES]
        n = TILES**2
        every = np.fromfile(folder / "labels.bin", np.uint8)
        if len(every) != n * len(BATCHES):
            raise ValueError(f"{folder / 'labels.bin'} must hold {n * len(BATCHES)} labels. Got {len(every)}.")
        labels = list(every.reshape(len(BATCHES), n))
    else:
        pairs = [read_batch(folder / f"{name}.bin") for name in BATCHES]
        images, labels = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    if max(int(part.max()) for part in labels) > 9:
        raise ValueError(
            f"the labels in {folder} must be in 0..9. Got larger ones: the files are damaged or not CIFAR-10."
        )
    return (
        torch.from_numpy(np.concatenate(images[:-1])),
        torch.from_numpy(np.concatenate(labels[:-1]).astype(np.int64)),
        torch.from_numpy(images[-1].copy()),
        torch.from_numpy(labels[-1].astype(np.int64)),
    )
