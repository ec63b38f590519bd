"""The model as it is: its filters, and held-out images once up and down. Seen again after each checkpoint."""

from __future__ import annotations

import torch

from harmonium.models import BoltzmannMachine
from harmonium.models.data_weight import data_weight
from harmonium.runs.plays.base import Move, Play, Seen, Session
from harmonium.runs.plays.drawing import answers
from harmonium.runs.plays.images import channels, examples, has_images_and_hidden_layers, shown, to_bytes
from harmonium.runs.shades import largest_shown
from harmonium.runs.trained import Trained

N_FILTERS, N_REBUILT = 64, 12


class Filters(Play):
    """The weights between the image and the hidden units with the largest of them, all on one scale."""

    name = "filters"
    live = True

    def suits(self, trained: Trained) -> bool:
        """Return whether a machine has weights that are images."""
        if trained.image is None or not isinstance(trained.model, BoltzmannMachine):
            return False
        try:
            weight = data_weight(trained.model)
        except TypeError:
            return False
        return weight.ndim == 2 and weight.shape[0] == torch.Size(trained.shape).numel() and weight.shape[1] > 1

    def move(self, trained: Trained, session: Session, move: Move) -> Seen:
        """Return the filters, the largest first."""
        weight = data_weight(trained.model).t()
        images = weight[weight.norm(dim=1).argsort(descending=True)[:N_FILTERS]]
        top = largest_shown(images)
        found = {"n": len(images), "shape": channels(trained.data.shape), "pixels": to_bytes(images, (-top, top))}
        return {"images": found, "of": len(weight), "top": top}


class Reconstructions(Play):
    """Held-out images above the means of the visible units given the means of the hidden ones."""

    name = "reconstructions"
    live = True

    def suits(self, trained: Trained) -> bool:
        """Return whether images go up to hidden units and down again."""
        return has_images_and_hidden_layers(trained)

    @torch.no_grad()
    def move(self, trained: Trained, session: Session, move: Move) -> Seen:
        """Return images and what becomes of them."""
        model, (x, _) = trained.model, examples(trained, N_REBUILT)
        state = answers(model, x, None)
        return {"images": shown(trained, x), "rebuilt": shown(trained, model.mean(model.data_layer, state))}
