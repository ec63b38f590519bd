"""Image sets of the data directory."""

from __future__ import annotations

import tarfile
from typing import IO

import numpy as np
import torch
from torch import Tensor

from harmonium.data import cifar
from harmonium.data.amat import read_amat
from harmonium.data.array import read_array
from harmonium.data.base import Data
from harmonium.data.directory import DataDirectory
from harmonium.data.extras import require
from harmonium.data.idx import read_idx
from harmonium.data.images import MODES, check_target, decode_image
from harmonium.data.patches import draw_patches
from harmonium.data.split import THREE_WAYS, counts, split_indices
from harmonium.data.transforms import dequantize, whiten

BYTES = "8-bit levels 0..255"


def hold_out(n: int, n_valid: int) -> int:
    """Return how many of n training samples are left when the last `n_valid` are held out."""
    if not 0 <= n_valid < n:
        raise ValueError(f"`n_valid` must be in 0..{n - 1}, to leave some of {n} training samples. Got {n_valid}.")
    return n - n_valid


def official(
    name: str, x: Tensor, labels: Tensor, test: Tensor, test_labels: Tensor, n_valid: int, note: str = BYTES
) -> Data:
    """Return image data with the official test set, the last `n_valid` training samples held out."""
    n = hold_out(len(x), n_valid)
    return Data.of_splits(
        name,
        (x[:n], x[n:] if n_valid else None, test),
        (labels[:n], labels[n:] if n_valid else None, test_labels),
        kind="levels",
        levels=255,
        note=f"{note}; last {n_valid:,} of train held out as valid, official test",
    )


def idx_set(name: str, directory: DataDirectory, n_valid: int) -> Data:
    """Read the four IDX files of MNIST or Fashion-MNIST, gzipped or not."""
    stems = [
        f"{name}/{part}" for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    ]
    x, labels, test, test_labels = (read_idx(directory.find(f"{stem}-ubyte.gz", f"{stem}-ubyte")) for stem in stems)
    return official(name, x[:, None], labels.long(), test[:, None], test_labels.long(), n_valid)


def mnist(directory: DataDirectory, *, generator: torch.Generator, n_valid: int = 10_000) -> Data:
    """MNIST: 60,000 + 10,000 handwritten digits, 28x28."""
    return idx_set("mnist", directory, n_valid)


def fashion_mnist(directory: DataDirectory, *, generator: torch.Generator, n_valid: int = 10_000) -> Data:
    """Fashion-MNIST: 60,000 + 10,000 articles of clothing, 28x28."""
    return idx_set("fashion-mnist", directory, n_valid)


def binarized_mnist(directory: DataDirectory, *, generator: torch.Generator) -> Data:
    """Static binarized MNIST: 50,000 / 10,000 / 10,000 (Salakhutdinov and Murray 2008; Larochelle and Murray 2011)."""
    stems = [f"binarized-mnist/binarized_mnist_{split}.amat" for split in ("train", "valid", "test")]
    train, valid, test = (read_amat(directory.find(f"{stem}.bz2", stem)).view(-1, 1, 28, 28) for stem in stems)
    note = "static binarization of Salakhutdinov and Murray, split of Larochelle"
    return Data("binarized-mnist", train, valid, test, shape=(1, 28, 28), kind="binary", levels=1, note=note)


def cifar10(directory: DataDirectory, *, generator: torch.Generator, n_valid: int = 5_000) -> Data:
    """CIFAR-10: 50,000 + 10,000 color images, 32x32."""
    packed = directory.has("cifar-10/data_batch_1.webp") and not directory.has("cifar-10/data_batch_1.bin")
    suffix = "webp" if packed else "bin"
    paths = [directory.find(f"cifar-10/{batch}.{suffix}") for batch in cifar.BATCHES]
    if packed:
        directory.find("cifar-10/labels.bin")
    return official("cifar10", *cifar.read_cifar(paths[0].parent), n_valid)


def cifar10_patches(
    directory: DataDirectory,
    *,
    generator: torch.Generator,
    n_samples: int = 60_000,
    size: int = 8,
    eps: float = 1e-5,
) -> Data:
    """Squares of CIFAR-10 images in color, dequantized and ZCA-whitened; those of a split from images of that split."""
    images = cifar10(directory, generator=generator)
    parts = []
    for x, n in zip((images.train, images.valid, images.test), counts(n_samples, THREE_WAYS), strict=True):
        if x is None:
            raise ValueError("CIFAR-10 must have validation images. Load it with n_valid above 0.")
        parts.append(dequantize(draw_patches(x, n, size, generator=generator), generator=generator))
    whitening = whiten(parts[0], eps)
    splits = [whitening.apply(x) for x in parts]
    note = f"{size}x{size} squares of CIFAR-10, dequantized, {whitening.description}; 80/10/10 from its splits"
    return Data.of_splits("cifar10-patches", splits, kind="real", note=note)


def celeba(directory: DataDirectory, *, generator: torch.Generator, size: int = 32, mode: str = "RGB") -> Data:
    """The first 10,000 aligned faces of CelebA, cropped to their central square: 9,000 / 500 / 500 in order."""
    check_target(size, mode)
    path = directory.find("celeba-10k-half/celebA_10k.tar.xz")
    x = torch.empty(10_000, MODES[mode], size, size, dtype=torch.uint8)
    n = 0
    with tarfile.open(path, "r|xz") as archive:
        for member in archive:
            if not (member.isfile() and member.name.endswith(".jpg")):
                continue
            file: IO[bytes] | None = archive.extractfile(member)
            number = int(member.name.rpartition("/")[2].removesuffix(".jpg")) - 1
            if file is not None and 0 <= number < len(x):
                x[number] = torch.from_numpy(decode_image(file, size, mode, f"{path}:{member.name}").copy())
                n += 1
    if n != len(x):
        raise ValueError(f"{path} must hold {len(x)} pictures 000001.jpg … 010000.jpg. Got {n}. Fetch it again.")
    return Data.of_splits(
        "celeba",
        x.split([9_000, 500, 500]),
        kind="levels",
        levels=255,
        note=f"{BYTES}, central square resized to {size}x{size}; first 9,000 / next 500 / last 500",
    )


def faces(name: str, x: Tensor, labels: Tensor | None, *, generator: torch.Generator) -> Data:
    """Return gray faces, split 80/10/10 at random, by person where that is known."""
    parts = split_indices(len(x), THREE_WAYS, labels=labels, generator=generator)
    images = [x[part][:, None] for part in parts]
    targets = [None if labels is None else labels[part] for part in parts]
    how = "random split 80/10/10" + ("" if labels is None else ", stratified by person")
    return Data.of_splits(name, images, targets, kind="levels", levels=255, note=f"{BYTES}; {how}")


def olivetti(directory: DataDirectory, *, generator: torch.Generator) -> Data:
    """The Olivetti faces: 40 people, 10 pictures each, 64x64."""
    arrays = read_array(directory.find("faces-grey/olivetti_faces.npz"))
    return faces("olivetti", arrays["images"], arrays["target"].long(), generator=generator)


def frey(directory: DataDirectory, *, generator: torch.Generator) -> Data:
    """The Frey faces: 1,965 frames of one person, 28x20."""
    return faces("frey", read_array(directory.find("faces-grey/frey_faces.npz"))["images"], None, generator=generator)


def cbcl(directory: DataDirectory, *, generator: torch.Generator) -> Data:
    """The CBCL faces: 2,429 pictures, 19x19."""
    path = directory.find("faces-grey/facesCBCL.mat")
    x = np.asarray(require("scipy.io", "sklearn", "reading .mat files").loadmat(path)["X"])
    pixels = torch.from_numpy(np.ascontiguousarray(np.rint(x * 255).astype(np.uint8).transpose(2, 0, 1)))
    return faces("cbcl", pixels, None, generator=generator)
