"""Fill in what is missing: units drawn from the model given the others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.data import Data
from harmonium.draws import draw_uniform
from harmonium.runs.run import Run
from harmonium.runs.values import complete

HALVES = {"top": (-2, 0), "bottom": (-2, 1), "left": (-1, 0), "right": (-1, 1), "half": (-2, 1)}
"""Halves of an image by their names: the axis, and which half of it is missing."""


@dataclass(frozen=True, eq=False)
class Inpainting:
    """Test samples on the data's scale: as they are, with NaN where values were taken away, and filled in."""

    original: Tensor
    given: Tensor
    filled: Tensor


def missing_mask(missing: str, data: Data, n: int, *, generator: torch.Generator | None = None) -> Tensor:
    """Return `(n, *shape)` booleans, True where a value is taken away: a random share of the units, or half an image.

    A column of a table goes as a whole.
    """
    if missing in HALVES:
        if len(data.shape) < 2:
            raise ValueError(
                f"`missing` = {missing} is for images. {data.name} has no rows and columns: give a share, 0.5."
            )
        axis, which = HALVES[missing]
        size = data.shape[axis]
        mask = torch.zeros(n, *data.shape, dtype=torch.bool)
        start, stop = (0, size // 2) if which == 0 else (size // 2, size)
        mask.narrow(axis, start, stop - start).fill_(True)
        return mask
    try:
        share = float(missing)
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        names = ", ".join(HALVES)
        raise ValueError(f"`missing` must be a share between 0 and 1, or one of {names}. Got {missing!r}.")
    if data.kind == "table":
        taken = draw_uniform(torch.empty(n, len(data.columns)), generator=generator) < share
        return taken.repeat_interleave(torch.tensor([column.width for column in data.columns]), 1)
    return draw_uniform(torch.empty(n, *data.shape), generator=generator) < share


def inpaint(run: Run, missing: str, *, n: int = 16, n_steps: int = 1000, seed: int = 0) -> Inpainting:
    """Take values away from the first `n` test samples and draw them from the model given the rest."""
    data, trained = run.data(), run.trained()
    if data.kind == "ratings":
        raise ValueError("Missing ratings are not drawn but predicted: see the report, or RatingRBM.predict in Python.")
    split = "test" if data.test is not None else "train"
    rows = complete(trained.rows(split))
    if rows is None:
        raise ValueError(f"The {split} data of {data.name} have no sample without missing values.")
    rows = rows[:n]
    if split == "train" and data.transform is not None:
        rows = data.transform(rows, generator=torch.Generator().manual_seed(seed))
    generator = torch.Generator().manual_seed(seed)
    mask = missing_mask(missing, data, len(rows), generator=generator).reshape(rows.shape).to(rows.device)
    mask = run.kind.takes_away(trained.model, mask)
    given = rows.masked_fill(mask, math.nan)
    filled = run.kind.fill_in(trained, given, n_steps=n_steps, generator=generator)
    return Inpainting(run.restored(rows), run.restored(given), run.restored(filled))
