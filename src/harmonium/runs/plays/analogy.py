"""An analogy: what a pair of images does to each other, done to a drawing."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from harmonium.models import GatedRBM
from harmonium.runs.plays.base import Move, Play, Seen, Session, count
from harmonium.runs.plays.drawing import activity
from harmonium.runs.plays.images import from_bytes, has_image_parts, shown_parts, snapped
from harmonium.runs.trained import Trained

N_PAIRS = 24


class Analogy(Play):
    """The hidden units see how the second image of a pair comes from the first, `E[h | x, y]`; with them the same is
    done to a drawing x': `E[y' | x', h]`."""

    name = "analogy"

    def suits(self, trained: Trained) -> bool:
        """Return whether the model is one of pairs of images."""
        return isinstance(trained.model, GatedRBM) and has_image_parts(trained)

    def opening(self, trained: Trained) -> Seen:
        """Return held-out pairs: their first and their second images."""
        first, second = pairs(trained).unbind(1)
        return {"first": shown_parts(trained, first), "second": shown_parts(trained, second)}

    @torch.no_grad()
    def move(self, trained: Trained, session: Session, move: Move) -> Seen:
        """Return the mean output for the drawing `x` and the transformation of a `pair`, and the hidden units."""
        known, model = pairs(trained), trained.model
        x, y = known[count(move, "pair", 0, len(known) - 1, 0)][:, None]
        units, prepared = model.layer("output"), trained.prepared
        drawn = from_bytes(move, "x", math.prod(units.shape)).reshape(1, *trained.data.shape[1:])
        other = snapped(units, prepared.encoded(drawn).reshape(1, *units.shape).to(x))
        hidden = model.hidden_mean(x, y)
        return {
            "output": shown_parts(trained, model.output_mean(other, hidden)),
            "hidden": {"hidden": activity(hidden)},
        }


def pairs(trained: Trained) -> Tensor:
    """Return held-out pairs, training ones where there are no others."""
    held_out = trained.rows("test")
    found: Any = trained.rows("train") if held_out is None else held_out
    return found[:N_PAIRS]
