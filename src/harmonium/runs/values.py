"""From data to the values that a model sees, and back."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from harmonium.data import DESCRIPTIONS, Data, load, scale, standardize, unstandardize
from harmonium.runs.settings import Config, DataSection
from harmonium.types import State

SPLITS = ("train", "valid", "test")

_PIXEL_FLOOR, _COLUMN_FLOOR = 0.1, 0.01  # the smallest spread, as a share of the largest


@dataclass(frozen=True, eq=False)
class Prepared:
    """Data as the model sees them, with what undoes it: `x · std + mean`, where the values were standardized.

    `data.note` says how the values were made; it belongs beside every likelihood. `kept` is what else the kind of model
    has computed from all samples and needs without them, `sha256` the fingerprint of the data, where there is one.
    """

    data: Data
    mean: Tensor | None = None
    std: Tensor | None = None
    kept: State = field(default_factory=dict)
    sha256: str | None = None

    def rows(self, split: str, shape: tuple[int, ...] | None = None) -> Tensor | None:
        """Return the samples of a split, each in the given shape (its own one if None)."""
        x = self.data.splits.get(split)
        return None if x is None else x.reshape(len(x), *(self.data.shape if shape is None else shape))

    def restored(self, x: Tensor) -> Tensor:
        """Return samples of the model in the shape and on the scale of the data: images are images again."""
        images = x.reshape(len(x), *self.data.shape)
        return images if self.mean is None or self.std is None else unstandardize(images, self.mean, self.std)

    def encoded(self, images: Tensor) -> Tensor:
        """Return samples on the scale of the data as the model sees them, `(n, *data.shape)`: undoes `restored`."""
        return images if self.mean is None or self.std is None else (images - self.mean) / self.std


def load_data(section: DataSection) -> Data:
    """Load the data of a run, binarized where that is asked for."""
    how = section.binarize if section.binarize in ("threshold", "sample", "resample") else None
    generator = torch.Generator().manual_seed(section.seed)
    try:
        options = section.options | ({"types": section.types} if section.types else {})
        data = load(section.name, data_dir=section.data_dir, generator=generator, binarize=how, **options)
    except TypeError as error:  # an option that the loader does not take
        raise ValueError(str(error)) from error
    if section.binarize == "scale" and data.kind != "levels":
        raise ValueError(
            f'`binarize = "scale"` is for images with levels. {data.name} holds {data.kind} data: leave it out.'
        )
    return data


def unit_values(config: Config, data: Data) -> Prepared:
    """Return values for visible units that follow the data: levels must be made 0 and 1, by choice."""
    section = config.data
    if data.kind == "levels":
        if section.binarize != "scale":
            raise ValueError(
                f"{data.name} holds {data.note.split(';')[0]}, and model {config.model.kind!r} wants 0 and 1. Choose "
                "how with --binarize threshold, sample (once), resample (anew each epoch) or scale (gray values as "
                "probabilities); or choose --model gaussian-rbm. Likelihoods of different choices cannot be compared."
            )
        return scaled(data)
    return real_values(data, section.standardize) if data.kind == "real" else Prepared(data)


def scaled(data: Data) -> Prepared:
    """Return levels as `x / levels` in [0, 1]."""
    parts: dict[str, Any] = {split: scale(x, data.levels) for split, x in data.splits.items()}
    note = f"{DESCRIPTIONS['scale'].replace('levels', str(data.levels))}; {data.note}"
    return Prepared(dataclasses.replace(data, kind="real", levels=None, note=note, **parts))


def real_values(data: Data, standardized: bool) -> Prepared:
    """Return real values: levels scaled to [0, 1], then each value standardized on the training split if wanted."""
    if data.kind not in ("levels", "real"):
        raise ValueError(
            f"{data.name} holds {data.kind} data, for which Gaussian units are wrong. Choose --model rbm, whose "
            "visible units follow the data."
        )
    if data.kind == "levels":
        data = scaled(data).data
    if not standardized:
        return Prepared(data)
    # Pixels that hardly vary would otherwise be blown up into outliers.
    train, mean, std = standardize(data.train, _PIXEL_FLOOR if len(data.shape) > 1 else _COLUMN_FLOOR)
    parts: dict[str, Any] = {split: (x - mean) / std for split, x in data.splits.items() if split != "train"}
    note = f"{DESCRIPTIONS['standardize']}; {data.note}"
    return Prepared(dataclasses.replace(data, train=train, note=note, **parts), mean, std)


def complete(x: Tensor | None) -> Tensor | None:
    """Return the rows without missing values, or None if there are none."""
    if x is None or not x.is_floating_point():
        return x
    rows = x[~x.flatten(1).isnan().any(1)]
    return rows if len(rows) else None
