"""A walk between two samples, through the hidden layer."""

from __future__ import annotations

import torch

from harmonium.runs.plays.base import Move, Play, Seen, Session, count
from harmonium.runs.plays.drawing import N_EXAMPLES, answers, free_energies
from harmonium.runs.plays.images import data_units, examples, has_images_and_hidden_layers, shown, snapped
from harmonium.runs.trained import Trained

N_FRAMES = 25


class Walk(Play):
    """The line `h(t) = (1 - t) E[h | a] + t E[h | b]` between two samples, seen as `E[x | h(t)]`.

    The free energy along it is that of the nearest states of the units: the hills between two samples.
    """

    name = "walk"

    def suits(self, trained: Trained) -> bool:
        """Return whether the data are images of a machine with a hidden layer."""
        return has_images_and_hidden_layers(trained)

    def opening(self, trained: Trained) -> Seen:
        """Return the samples to walk between."""
        x, labels = examples(trained, N_EXAMPLES)
        return {"examples": shown(trained, x), "labels": labels}

    @torch.no_grad()
    def move(self, trained: Trained, session: Session, move: Move) -> Seen:
        """Return the way from sample `a` to sample `b`."""
        model = trained.model
        x, _ = examples(trained, N_EXAMPLES)
        ends = x[[count(move, name, 0, len(x) - 1, 0) for name in ("from", "to")]]
        state = answers(model, ends, None)
        t = torch.linspace(0, 1, N_FRAMES).to(ends)
        along = {
            name: torch.lerp(value[:1], value[1:], t.reshape(-1, *(1,) * (value.ndim - 1)))
            for name, value in state.items()
            if name != model.data_layer
        }
        means = model.mean(model.data_layer, along)
        free = free_energies(model, snapped(data_units(trained), means))
        return {"images": shown(trained, means), "free_energies": None if free is None else free.tolist()}
