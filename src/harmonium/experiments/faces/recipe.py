"""How a network of faces is built and learns: the sizes, the rates and the time they take."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from harmonium.units.activation import find_activation


@dataclass(frozen=True)
class FaceRecipe:
    """How the network is built and learns. `minutes` is what all of it takes on one free core.

    `layers` are those of units with `levels` 0..N, steepness `k` and `activation` in the words of `DBN.from_spec`, ""
    for none. They learn all at once for `layer_epochs`, each from its own loss, or start at principal components if
    that is 0; then as a whole for `tune_epochs`, with recognition weights of their own and `noise` on the code (see
    `Reconstruction`). Above them come `n_components` codes in closed form and `n_hidden` binary units, which
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
    levels: int = 255
    k: float | None = None
    activation: str = "sigmoid"
    tune_epochs: int = 0
    tune_rate: float = 0.02
    noise: float = 0.0

    @property
    def deep(self) -> bool:
        """Whether the layers end in dense ones, whose units are the codes."""
        return "dense" in self.layers

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
            layer_epochs=max(1, round(self.layer_epochs * share)) if self.layer_epochs else 0,
            tune_epochs=max(1, round(self.tune_epochs * share)) if self.tune_epochs else 0,
            epochs=max(1, round(self.epochs * share)),
            minutes=budget,
        )

    def adapted(
        self,
        *,
        levels: int | None = None,
        k: float | None = None,
        activation: str | None = None,
        rate: float | None = None,
        tuning: bool | None = None,
    ) -> FaceRecipe:
        """Return the recipe with other units, another rate or another way to learn of its layers; None changes nothing.

        >>> FaceRecipe(layers="dense 9", tune_epochs=6).adapted(levels=15, tuning=False).layer_epochs
        6
        """
        asked: dict[str, Any] = {"levels": levels, "k": k, "activation": activation, "rate": rate, "tuning": tuning}
        given = [name for name, value in asked.items() if value is not None]
        if given and not self.layers:
            raise ValueError(f"--{given[0]} is for layers with levels. Choose --network {CONV} or {PAPER}.")
        if tuning and not self.tune_epochs:
            raise ValueError(f"--tuning is for --network {PAPER}.")
        if activation is not None:
            find_activation(activation)
        changes: dict[str, Any] = {name: asked[name] for name in given if name in ("levels", "k", "activation")}
        if rate is not None:
            changes |= {"tune_rate": rate, "layer_rate": rate}
        if tuning is False and self.tune_epochs:
            changes |= {"layer_epochs": self.tune_epochs, "tune_epochs": 0}
        return dataclasses.replace(self, **changes)


DENSE, CONV, PAPER = "dense", "conv", "paper"

_HALVED = "conv 64 4x4/2, conv 128 4x4/2, conv 256 4x4/2"
_SIDE_4 = {32: _HALVED, 64: f"{_HALVED}, conv 256 4x4/2", 128: f"{_HALVED}, conv 256 4x4/2, conv 256 4x4/2"}


def paper_layers(size: int) -> str:
    """Return the layers of Hwang et al. 2020 below their top machine, for images of this size.

    The paper has convolutions 3-64-128-256-256 and dense layers 4096-1000-500-200-100: four convolutions make 4096
    units of 64 x 64 pixels, so that images of other sizes are halved down to 4 x 4 as well. The machine 200-100 at its
    top, whose chains freeze, makes room for the codes and the machine above them.
    """
    return f"{_SIDE_4[size]}, dense 1000, dense 500, dense 200"


RECIPES: dict[str, dict[int, FaceRecipe]] = {
    DENSE: {32: FaceRecipe(), 64: FaceRecipe()},
    CONV: {
        32: FaceRecipe(layers="conv 64 4x4/2", layer_epochs=20, minutes=11),
        64: FaceRecipe(layers="conv 64 8x8/4", layer_epochs=20, minutes=12),
    },
    PAPER: {
        size: FaceRecipe(
            layers=paper_layers(size),
            tune_epochs=epochs,
            n_components=200,
            epochs=600,
            minutes=minutes,
            activation="relu",
            tune_rate=0.0005,
        )
        for size, epochs, minutes in ((32, 2, 7), (64, 2, 18), (128, 2, 62))
    },
}
"""The recipe of each network for images of each size."""
