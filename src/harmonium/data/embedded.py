"""Data sets that need no file: digits of scikit-learn, exact lattices, densities in the plane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from harmonium.data import films, lattice, toys, transformed
from harmonium.data.base import Data
from harmonium.data.directory import DataDirectory
from harmonium.data.extras import require
from harmonium.data.split import THREE_WAYS, counts, split_indices


def digits(directory: DataDirectory, *, generator: torch.Generator) -> Data:
    """The 1,797 handwritten digits of scikit-learn, 8x8, levels 0..16 (UCI, Alpaydin and Kaynak 1998)."""
    bunch = require("sklearn.datasets", "sklearn", "the embedded digits").load_digits()
    x = torch.from_numpy(bunch.images).to(torch.uint8)[:, None]
    labels = torch.from_numpy(bunch.target).long()
    parts = split_indices(len(x), (0.7, 0.1, 0.2), labels=labels, generator=generator)
    return Data.of_splits(
        "digits",
        [x[part] for part in parts],
        [labels[part] for part in parts],
        kind="levels",
        levels=16,
        note="levels 0..16; random split 70/10/20, stratified by digit",
    )


def bars_and_stripes(directory: DataDirectory, *, generator: torch.Generator, size: int = 4) -> Data:
    """The whole law of bars and stripes: 2^(size + 1) equally likely patterns, all-off and all-on twice among them."""
    patterns, probabilities = lattice.bars_and_stripes(size)
    times = (probabilities * 2 ** (size + 1)).round().long()
    x = patterns.repeat_interleave(times, 0)[:, None]
    note = f"the exact law: {len(x)} equally likely patterns, {len(patterns)} distinct; test is the same law"
    return Data("bars-and-stripes", x, None, x, shape=(1, size, size), kind="binary", levels=1, note=note)


def ising(
    directory: DataDirectory,
    *,
    generator: torch.Generator,
    n_samples: int = 10_000,
    size: int = 4,
    beta: float = lattice.CRITICAL_BETA,
) -> Data:
    """Exact, independent samples of the Ising model on a small torus, as 0/1 (spins are 2x - 1)."""
    x = lattice.ising(n_samples, size=size, beta=beta, generator=generator)[:, None]
    train, valid, test = x.split(counts(n_samples, THREE_WAYS))
    note = f"exact samples at beta {beta:.6g} on a {size}x{size} torus, spins 2x - 1; split 80/10/10"
    return Data("ising", train, valid, test, shape=(1, size, size), kind="binary", levels=1, note=note)


def bouncing_balls(
    directory: DataDirectory,
    *,
    generator: torch.Generator,
    n_samples: int = 3_000,
    n_frames: int = 20,
    size: int = 15,
    n_balls: int = 3,
) -> Data:
    """Films of balls that bounce in a box, as 0/1."""
    x = films.bouncing_balls(n_samples, n_frames=n_frames, size=size, n_balls=n_balls, generator=generator)
    note = f"{n_balls} balls in {n_frames} frames of {size}x{size}, drawn; split 80/10/10"
    splits = x.split(counts(n_samples, THREE_WAYS))
    return Data.of_splits("bouncing-balls", splits, kind="binary", levels=1, note=note)


def shifted_dots(
    directory: DataDirectory,
    *,
    generator: torch.Generator,
    n_samples: int = 20_000,
    size: int = 10,
    reach: int = 1,
    density: float = 0.5,
) -> Data:
    """Pairs of random dots and the same dots shifted; the shift is the label."""
    drawn = transformed.shifted_dots(n_samples, size=size, reach=reach, density=density, generator=generator)
    return _pairs("shifted-dots", *drawn, f"shifts by up to {reach} pixels, density {density:g}")


def turned_dots(
    directory: DataDirectory,
    *,
    generator: torch.Generator,
    n_samples: int = 20_000,
    size: int = 10,
    n_angles: int = 8,
    density: float = 0.5,
) -> Data:
    """Pairs of random dots and the same dots turned; the angle is the label."""
    drawn = transformed.turned_dots(n_samples, size=size, n_angles=n_angles, density=density, generator=generator)
    return _pairs("turned-dots", *drawn, f"{n_angles} angles, density {density:g}")


def _pairs(name: str, x: Tensor, labels: Tensor, told: str) -> Data:
    sizes = counts(len(x), THREE_WAYS)
    note = f"pairs of random dots, {told}; split 80/10/10"
    return Data.of_splits(name, x.split(sizes), labels.split(sizes), kind="binary", levels=1, note=note)


def toy(name: str, draw: Callable[..., Tensor | tuple[Tensor, Tensor]]) -> Callable[..., Data]:
    """Return the loader of a toy density: 10,000 samples unless told, split 80/10/10."""

    def load_toy(
        directory: DataDirectory, *, generator: torch.Generator, n_samples: int = 10_000, **options: Any
    ) -> Data:
        drawn = draw(n_samples, generator=generator, **options)
        x, labels = drawn if isinstance(drawn, tuple) else (drawn, None)
        sizes = counts(n_samples, THREE_WAYS)
        targets = (None, None, None) if labels is None else labels.split(sizes)
        told = "".join(f", {key} {value:g}" for key, value in options.items())
        note = f"samples in the plane{told}; split 80/10/10"
        return Data.of_splits(name, x.split(sizes), targets, kind="real", note=note)

    load_toy.__doc__ = f"Samples in the plane: {name}, with its options."
    load_toy.__wrapped_draw__ = draw  # type: ignore[attr-defined]
    return load_toy


moons = toy("moons", toys.labelled_moons)
circles = toy("circles", toys.labelled_circles)
mixture = toy("mixture", toys.labelled_mixture)
pinwheel = toy("pinwheel", toys.labelled_pinwheel)
checkerboard = toy("checkerboard", toys.checkerboard)
