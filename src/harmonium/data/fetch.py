"""Public data sets from the network, each file checked by its SHA-256 before it is kept."""

from __future__ import annotations

import os
from pathlib import Path

from harmonium.data.checksums import SHA256, sha256
from harmonium.data.directory import FETCHED, VARIABLE, DataDirectory
from harmonium.data.extras import require

_IDX = tuple(
    f"{part}-ubyte.gz" for part in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
)
_STATIC = tuple(f"binarized_mnist_{split}.amat" for split in ("train", "valid", "test"))

FILES: dict[str, tuple[str, ...]] = {name: _STATIC if name == "binarized-mnist" else _IDX for name in FETCHED}
"""The files of the data sets that can be fetched by name."""

MIRRORS: dict[str, tuple[str, ...]] = {
    "mnist": (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    "fashion-mnist": (
        "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    ),
    "binarized-mnist": (
        "https://raw.githubusercontent.com/riannevdberg/sylvester-flows/master/data/MNIST_static/",
        "http://www.cs.toronto.edu/~larocheh/public/datasets/binarized_mnist/",
    ),
}
"""Where each is kept in public, tried in this order; what a mirror sends is believed only by its checksum."""

SECONDS = 30.0
"""How long a mirror may be silent."""


def fetch(
    name: str, data_dir: str | os.PathLike[str] | None = None, *, mirrors: tuple[str, ...] | None = None
) -> list[Path]:
    """Bring the files of a data set into the data directory, those that are not there yet, and return all of them.

    The directory is `data_dir`, or the one that HARMONIUM_DATA names, and is made where it is not there. Each file is
    looked for at one mirror after another and kept only if it has the known SHA-256. `mirrors` are other addresses to
    look at, such as a folder of your own network.
    """
    if name not in FILES:
        raise ValueError(f"{name!r} cannot be fetched by its name. {', '.join(FILES)} can.")
    root = DataDirectory(data_dir).root()
    if root is None:
        raise ValueError(
            f"Say where {name} is to be kept: with --data-dir (`data_dir=` in Python) or the variable {VARIABLE}."
        )
    return [_fetched(name, file, root, MIRRORS[name] if mirrors is None else mirrors) for file in FILES[name]]


def _fetched(name: str, file: str, root: Path, mirrors: tuple[str, ...]) -> Path:
    """Return one file, fetched if it is not there or is not the one that is known."""
    path, known = root / name / file, SHA256[f"{name}/{file}"]
    if path.is_file() and sha256(path) == known:
        return path
    pooch = require("pooch", "fetch", f"fetching {name}")
    path.parent.mkdir(parents=True, exist_ok=True)
    pooch.get_logger().setLevel("ERROR")
    troubles = []
    for mirror in mirrors:
        try:
            return Path(
                pooch.retrieve(
                    f"{mirror}{file}",
                    f"sha256:{known}",
                    fname=file,
                    path=path.parent,
                    downloader=pooch.HTTPDownloader(timeout=SECONDS),
                )
            )
        except (OSError, ValueError) as error:  # no network, no such file, or another one than is known
            troubles.append(f"{mirror}: {(str(error).splitlines() or [type(error).__name__])[0][:120]}")
    raise ConnectionError(
        f"{file} of {name} could not be fetched. Is there a network? Tried:\n  "
        + "\n  ".join(troubles)
        + f"\nOr put it at {path} yourself; its SHA-256 is {known}."
    )
