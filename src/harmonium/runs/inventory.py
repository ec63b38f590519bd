"""Which data sets can be loaded here, and which files the others need."""

from __future__ import annotations

from dataclasses import dataclass

from harmonium.data import DATASETS, EMBEDDED, DataDirectory

_IDX = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
_CIFAR = tuple(f"data_batch_{i}" for i in range(1, 6)) + ("test_batch",)

NEEDED: dict[str, tuple[tuple[str, ...], ...]] = {
    "mnist": tuple((f"mnist/{name}.gz", f"mnist/{name}") for name in _IDX),
    "fashion-mnist": tuple((f"fashion-mnist/{name}.gz", f"fashion-mnist/{name}") for name in _IDX),
    "binarized-mnist": tuple(
        (f"binarized-mnist/binarized_mnist_{split}.amat.bz2", f"binarized-mnist/binarized_mnist_{split}.amat")
        for split in ("train", "valid", "test")
    ),
    "cifar10": tuple((f"cifar-10/{name}.bin", f"cifar-10/{name}.webp") for name in _CIFAR),
    "cifar10-patches": tuple((f"cifar-10/{name}.bin", f"cifar-10/{name}.webp") for name in _CIFAR),
    "celeba": (("celeba-10k-half/celebA_10k.tar.xz",),),
    "olivetti": (("faces-grey/olivetti_faces.npz",),),
    "frey": (("faces-grey/frey_faces.npz",),),
    "cbcl": (("faces-grey/facesCBCL.mat",),),
    "newsgroups": (("20newsgroups/20news_w100.mat",),),
    "newsgroups-counts": (("20newsgroups/20news_w1000.mat",),),
    "movielens": (("movielens-100k/ml-100k.tar.xz",),),
}
"""The files of each data set in the data directory; any one of each group will do."""


@dataclass(frozen=True)
class Available:
    """A data set, and the files that are still missing: none if it can be loaded."""

    name: str
    embedded: bool
    missing: tuple[str, ...]


def inventory(data_dir: str | None = None) -> list[Available]:
    """Return all known data sets with what they lack in the data directory.

    >>> [item.name for item in inventory() if item.embedded][:2]
    ['digits', 'bars-and-stripes']
    """
    directory = DataDirectory(data_dir)

    def missing(name: str) -> tuple[str, ...]:
        needed = () if name in EMBEDDED else NEEDED[name]
        return tuple(files[0] for files in needed if not any(directory.has(file) for file in files))

    return [Available(name, name in EMBEDDED, missing(name)) for name in DATASETS]
