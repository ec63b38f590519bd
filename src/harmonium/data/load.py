"""One function for all data: a known name, or a path."""

from __future__ import annotations

import dataclasses
import inspect
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from harmonium.data import embedded, from_path, image_sets, ratings, text_sets
from harmonium.data.base import Data
from harmonium.data.directory import DataDirectory
from harmonium.data.transforms import DESCRIPTIONS, BinarizeEachTime
from harmonium.data.transforms import binarize as binarize_values

Loader = Callable[..., Data]

DATASETS: dict[str, Loader] = {
    "digits": embedded.digits,
    "bars-and-stripes": embedded.bars_and_stripes,
    "ising": embedded.ising,
    "bouncing-balls": embedded.bouncing_balls,
    "shifted-dots": embedded.shifted_dots,
    "turned-dots": embedded.turned_dots,
    "moons": embedded.moons,
    "circles": embedded.circles,
    "mixture": embedded.mixture,
    "pinwheel": embedded.pinwheel,
    "checkerboard": embedded.checkerboard,
    "mnist": image_sets.mnist,
    "fashion-mnist": image_sets.fashion_mnist,
    "binarized-mnist": image_sets.binarized_mnist,
    "cifar10": image_sets.cifar10,
    "cifar10-patches": image_sets.cifar10_patches,
    "celeba": image_sets.celeba,
    "olivetti": image_sets.olivetti,
    "frey": image_sets.frey,
    "cbcl": image_sets.cbcl,
    "newsgroups": text_sets.newsgroups,
    "newsgroups-counts": text_sets.newsgroups_counts,
    "movielens": text_sets.movielens,
}
"""The known names and their loaders, `loader(directory, *, generator, **options) -> Data`."""

EMBEDDED = (
    "digits",
    "bars-and-stripes",
    "ising",
    "bouncing-balls",
    "shifted-dots",
    "turned-dots",
    "moons",
    "circles",
    "mixture",
    "pinwheel",
    "checkerboard",
)
"""The names that need no file."""


def options_of(loader: Loader) -> dict[str, Any]:
    """Return the options that a loader takes and their defaults.

    >>> options_of(DATASETS["moons"])
    {'n_samples': 10000, 'noise': 0.1}
    """
    functions = [loader, getattr(loader, "__wrapped_draw__", None)]
    return {
        name: parameter.default
        for function in functions
        if function is not None
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name != "generator"
    }


def check_option(name: str, option: str, value: Any, default: Any) -> None:
    """Raise unless an option has the type of its default, and is a number that can be computed with."""
    if type(default) is int and type(value) is int and not -(10**9) <= value <= 10**9:
        raise ValueError(f"`{option}` of {name!r} must be a number of a sensible size. Got {value}.")
    if type(default) is float and type(value) in (int, float) and math.isfinite(value):
        return
    if default is not None and type(value) is not type(default):
        raise TypeError(f"`{option}` of {name!r} must be {type(default).__name__}, such as {default!r}. Got {value!r}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"`{option}` of {name!r} must be finite. Got {value}.")


def path_loader(path: Path) -> Loader:
    """Return the loader of a file or folder by its name."""
    name = path.name.lower()
    if path.is_dir():
        return from_path.load_folder
    if name.endswith((".npy", ".npz")):
        return from_path.load_array
    if name.endswith(".csv") and ratings.is_ratings(path):
        return ratings.load_ratings
    if name.endswith(from_path.TABLES):
        return from_path.load_table
    if name.endswith((".idx", ".idx.gz", "-ubyte", "-ubyte.gz")):
        return from_path.load_idx
    if name.endswith((".amat", ".amat.bz2")):
        return from_path.load_amat
    raise ValueError(f"{path} is not a kind of file that can be read. Readable are {from_path.READABLE}.")


def apply_binarize(data: Data, how: str, *, generator: torch.Generator) -> Data:
    """Return image data with 0/1 values: by `"threshold"`, by `"sample"` once, or by `"resample"` for every batch.

    With `"resample"` the training images keep their levels and `data.transform` draws them anew for each batch.
    """
    if how not in ("threshold", "sample", "resample"):
        raise ValueError(f'`binarize` must be "threshold", "sample" or "resample". Got {how!r}.')
    if data.kind != "levels" or data.levels is None or data.train.is_floating_point():
        raise ValueError(
            f"`binarize` is for images with levels. {data.name} holds {data.kind} data: leave `binarize` out."
        )
    once = "sample" if how == "resample" else how
    parts: dict[str, Any] = {
        split: binarize_values(x, once, levels=data.levels, generator=generator)
        for split, x in (("train", data.train), ("valid", data.valid), ("test", data.test))
        if x is not None and not (how == "resample" and split == "train")
    }
    note = f"{DESCRIPTIONS[how].replace('levels', str(data.levels))}; {data.note.partition('; ')[2] or data.note}"
    transform = BinarizeEachTime(data.levels) if how == "resample" else None
    return dataclasses.replace(data, kind="binary", levels=1, note=note, transform=transform, **parts)


def load(
    name: str | os.PathLike[str],
    *,
    data_dir: str | os.PathLike[str] | None = None,
    generator: torch.Generator | None = None,
    binarize: str | None = None,
    **options: Any,
) -> Data:
    """Load a data set by its name in `DATASETS`, or from a path.

    A path is a `.npy` or `.npz` (never pickled), `.csv` or `.parquet`, IDX (`.idx`, `*-ubyte`, `*-ubyte.gz`) or `.amat`
    (`.amat.bz2`) file, or a folder of pictures. Files of named sets are looked for in `data_dir`, or in the directory
    that the environment variable HARMONIUM_DATA names, and are verified by SHA-256.

    `generator` draws toys, random splits and sampled binarizations; None stands for a new one with seed 0, so that the
    same call always gives the same data. `binarize` makes 0/1 images of levels: `"threshold"`, `"sample"` (once), or
    `"resample"` (`data.transform` draws each training batch anew). `options` are those of the loader: `n_samples` and
    `noise` of moons, `size` and `mode` of pictures, `n_valid` of MNIST, `types` of tables …

    >>> from harmonium.data.load import load
    >>> print(load("moons", n_samples=100, noise=0.05))
    moons: 80 train / 10 valid / 10 test, shape (2,), real (samples in the plane, noise 0.05; split 80/10/10)
    """
    generator = torch.Generator().manual_seed(0) if generator is None else generator
    path = Path(name).expanduser()
    loader: Loader
    source: DataDirectory | Path
    if isinstance(name, str) and name in DATASETS:
        loader, source = DATASETS[name], DataDirectory(data_dir)
    elif path.exists():
        loader, source = path_loader(path), path
    else:
        raise ValueError(
            f"{str(name)!r} is neither a known data set nor an existing path. Known are {', '.join(DATASETS)}. "
            f"A path may be {from_path.READABLE}."
        )
    known = options_of(loader)
    unknown = [option for option in options if option not in known]
    if unknown:
        takes = ", ".join(known) or "no options"
        raise TypeError(f"{str(name)!r} does not take {', '.join(unknown)}. It takes {takes}.")
    for option, value in options.items():
        check_option(str(name), option, value, known[option])
    data = loader(source, generator=generator, **options)
    return data if binarize is None else apply_binarize(data, binarize, generator=generator)
