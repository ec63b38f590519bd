"""How a network of faces is built and learns: the sizes, the rates and the time they take."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass


@dataclass(frozen=True)
class FaceRecipe:
    """How the network is built and learns. `minutes` is what all of it takes on one free core.

    `layers` are convolutional layers of 255-level units in the words of `DBN.from_spec`, "" for none; they learn
    jointly for `layer_epochs`. Above them come `n_components` codes in closed form and `n_hidden` binary units, which
    learn for `epochs` by persistent contrastive divergence from weight vectors of length `norm` and spread `sigma`.
    """

    layers: str = ""
    layer_epochs: int = 0
    layer_rate: float = 0.1
    n_components: int = 200
    n_hidden: int = 1000
    epochs: int = 600
    minutes: float = 8.0
    batch_size: int = 100
    n_chains: int = 100
    n_steps: int = 1
    learning_rate: float = 1e-3
    average: float = 0.999
    sigma: float = 0.6
    norm: float = 0.8

    def within(self, budget: float) -> FaceRecipe:
        """Return the recipe with as many epochs as fit into `budget` minutes on one free core.

        >>> FaceRecipe(epochs=200, minutes=10).within(5).epochs
        100
        """
        if not budget > 0:
            raise ValueError(f"`budget` must be a positive number of minutes. Got {budget}.")
        share = budget / self.minutes
        return dataclasses.replace(
            self,
            layer_epochs=max(1, round(self.layer_epochs * share)) if self.layers else 0,
            epochs=max(1, round(self.epochs * share)),
            minutes=budget,
        )


DENSE, CONV = "dense", "conv"

RECIPES: dict[str, dict[int, FaceRecipe]] = {
    DENSE: {32: FaceRecipe(), 64: FaceRecipe()},
    CONV: {
        32: FaceRecipe(layers="conv 64 4x4/2", layer_epochs=20, minutes=11),
        64: FaceRecipe(layers="conv 64 8x8/4", layer_epochs=20, minutes=12),
    },
}
"""The recipe of each network for images of each size."""
