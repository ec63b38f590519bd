"""Images between a model and a page: bytes in base64, 0 black and 255 white on the scale of the data."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.runs.plays.base import Move
from harmonium.runs.shades import Limits, limits_of
from harmonium.runs.trained import Trained
from harmonium.units import Units


def channels(shape: Sequence[int]) -> tuple[int, int, int]:
    """Return the channels, the height and the width of images of a shape.

    >>> channels((28, 28))
    (1, 28, 28)
    """
    full = (1, *shape) if len(shape) == 2 else tuple(shape)
    return full[0], full[1], full[2]


def to_bytes(x: Tensor, limits: Limits = (0.0, 1.0)) -> str:
    """Return numbers as bytes in base64, from the lower limit, 0, to the upper one, 255.

    >>> to_bytes(torch.tensor([0.0, 1.0]))
    'AP8='
    """
    low, high = limits
    scaled = ((x.detach().cpu().float() - low) / (high - low)).nan_to_num(0.0).clamp(0, 1)
    return base64.b64encode((scaled * 255).round().to(torch.uint8).numpy().tobytes()).decode()


def from_bytes(move: Move, name: str, n: int) -> Tensor:
    """Return n numbers in [0, 1] from bytes in base64, or say what is wrong with them."""
    text = move.get(name)
    if not isinstance(text, str) or len(text) > 4 * math.ceil(n / 3):
        raise ValueError(f"`{name}` must be {n} bytes in base64.")
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        content = b""
    if len(content) != n:
        raise ValueError(f"`{name}` must be {n} bytes in base64. Got {len(content)}.")
    return torch.frombuffer(bytearray(content), dtype=torch.uint8).float() / 255


def limits(trained: Trained) -> Limits:
    """Return what is black and white in images of a model: as in its training data."""
    return limits_of(trained.restored(trained.data.train[:200].float()))


def shown(trained: Trained, x: Tensor) -> dict[str, Any]:
    """Return samples of a model as images of a page."""
    shape = channels(trained.data.shape)
    return {"n": len(x), "shape": shape, "pixels": to_bytes(trained.restored(x.detach()), limits(trained))}


def has_image_parts(trained: Trained) -> bool:
    """Return whether each sample is a row of images: the frames of a film, or a pair."""
    return len(trained.data.shape) in (3, 4) and (len(trained.data.shape) == 3 or trained.data.shape[1] in (1, 3))


def shown_parts(trained: Trained, x: Tensor) -> dict[str, Any]:
    """Return parts of samples that are rows of images (see `has_image_parts`) as images of a page."""
    mean, std = trained.prepared.mean, trained.prepared.std
    parts = x.detach().reshape(len(x), *trained.data.shape[1:])
    parts = parts if mean is None or std is None else parts * std + mean
    return {"n": len(x), "shape": channels(trained.data.shape[1:]), "pixels": to_bytes(parts, limits(trained))}


def read(trained: Trained, move: Move, name: str) -> Tensor:
    """Return the image of a move as the model takes it, one sample; units with few states get the nearest of them."""
    low, high = limits(trained)
    image = from_bytes(move, name, math.prod(trained.shape)).reshape(1, *trained.data.shape) * (high - low) + low
    like = next(trained.model.parameters(), torch.zeros(()))
    x = trained.prepared.encoded(image).reshape(1, *trained.shape).to(like)
    return snapped(data_units(trained), x)


def data_units(trained: Trained) -> Units | None:
    """Return the units of the data of a Boltzmann machine."""
    model = trained.model
    return model.layer(model.data_layer) if isinstance(model, BoltzmannMachine) else None


def snapped(units: Units | None, x: Tensor) -> Tensor:
    """Return values with the nearest state of their units, where these are few."""
    states = None if units is None or units.sites != units.shape else units.states()
    if states is None or len(states) > 256:
        return x
    middle = (states[1:] + states[:-1]) / 2
    return states.to(x)[torch.bucketize(x, middle.to(x))]


def has_images_and_hidden_layers(trained: Trained) -> bool:
    """Return whether the model is a machine in which images go up to hidden units and down again."""
    model = trained.model
    return (
        trained.image is not None and isinstance(model, BoltzmannMachine) and len(model.layers) > 1 and not model.given
    )


def examples(trained: Trained, n: int) -> tuple[Tensor, list[int] | None]:
    """Return held-out samples, training ones where there are no others, without missing values; and their classes."""
    data = trained.data
    split = "test" if data.test is not None else "valid" if data.valid is not None else "train"
    rows, labels = data.splits[split][:n], data.labels.get(split)
    rows = rows.reshape(len(rows), *trained.shape).to(next(trained.model.parameters(), torch.zeros(())))
    rows = snapped(data_units(trained), rows.nan_to_num(0.0))
    return rows, None if labels is None else labels[:n].tolist()
