"""Filters for classification: how images are prepared, and how a convolutional RBM of N-level units learns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from harmonium.couplings import Conv2d
from harmonium.data import draw_patches, local_contrast, scale, whiten_locally
from harmonium.data.local_whitening import LocalWhitening
from harmonium.learning import Callback, Training
from harmonium.learning.objectives import CD
from harmonium.learning.transforms import Sparsity
from harmonium.models import DBN, RBM
from harmonium.models.dbn_spec import units_with_levels
from harmonium.units import Gaussian


@dataclass(frozen=True)
class FeatureRecipe:
    """Everything that decides the features of a data set, the number of levels N excepted.

    Images get `border` black pixels on each side, are freed of local contrast (unless `contrast_floor` is None) and
    whitened by a filter. `n_filters` filters of `kernel` x `kernel` pixels are learned from patches of that size by
    CD-1 with a sparsity target, and averaged over a `grid` x `grid` of cells. The machine `svm` reads these
    means, or their square roots (`root`); for `width` see `svm_protocol`.
    """

    n_filters: int = 400
    kernel: int = 6
    border: int = 0
    contrast_floor: float | None = 0.03
    eps: float = 0.1
    n_patches: int = 200_000
    min_spread: float = 0.0
    epochs: int = 3
    batch_size: int = 256
    learning_rate: float = 1e-3
    sparsity: float = 0.03
    pressure: float = 1.0
    grid: int = 2
    root: bool = False
    svm: str = "linear"
    width: float = 1.0
    costs: tuple[float, ...] = (1e-4, 3e-4, 1e-3, 3e-3)


class ImageRecipe(Protocol):
    """What a recipe says of images."""

    @property
    def border(self) -> int:
        """The black pixels on each side."""
        ...

    @property
    def contrast_floor(self) -> float | None:
        """The floor of the local contrast that they are freed of; None: they keep it."""
        ...

    @property
    def eps(self) -> float:
        """What whitening adds to each variance."""
        ...


@dataclass(frozen=True, eq=False)
class Preparation:
    """From stored images to what the filters see: border, scale, local contrast, whitening."""

    recipe: ImageRecipe
    top: int = 255
    whitening: LocalWhitening | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """Return prepared images from stored ones of levels 0..`top`."""
        border, floor = self.recipe.border, self.recipe.contrast_floor
        y = pad(scale(x, self.top), (border,) * 4)
        y = y if floor is None else local_contrast(y, floor=floor)
        return y if self.whitening is None else self.whitening.apply(y)


def fit_preparation(
    recipe: ImageRecipe, x: Tensor, top: int = 255, *, generator: torch.Generator | None = None
) -> Preparation:
    """Return the preparation of a recipe with its whitening filter fitted to training images of levels 0..`top`."""
    before = Preparation(recipe, top)
    return Preparation(recipe, top, whiten_locally(before(x), eps=recipe.eps, generator=generator))


def draw_training_patches(recipe: FeatureRecipe, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw the patches that the filters learn from; those with a spread below `min_spread` are left out."""
    patches = draw_patches(x, recipe.n_patches, recipe.kernel, generator=generator)
    return patches[patches.flatten(1).std(1) >= recipe.min_spread]


def filter_training(
    recipe: FeatureRecipe,
    patches: Tensor,
    levels: int,
    *,
    generator: torch.Generator | None = None,
    callbacks: Sequence[Callback] = (),
) -> Training:
    """Return the training of a convolutional RBM with hidden levels 0..N on prepared patches, before its first update.

    The visible units are Gaussian with σ = 1 and see `N v`: patches on a scale of N levels with the noise of one. With
    k = 1/N the activity is `h/N = sigmoid(c/N + Wᵀv)` and the reconstruction `v = W h/N + b/N`, whatever N: the same
    network with the same weights. Only the noise differs, σ = 1/N on v and at most ½/N on h/N. Adam does not see the
    scale of a gradient; the rates of the biases, whose scale is N, are multiplied by it. So N alone is changed.
    """
    rbm = empty_filters(recipe, patches.shape[1], levels, generator=generator)
    target, rate = recipe.sparsity, recipe.learning_rate
    with torch.no_grad():
        rbm.weight.mul_(5.0)  # a standard deviation of 0.05
        rbm.hidden_bias.fill_(levels * math.log(target / (1 - target)))
    weight, visible_bias, hidden_bias = (list(coupling.parameters()) for coupling in rbm.couplings)
    optimizer = torch.optim.Adam(
        [
            {"params": weight, "lr": rate},
            {"params": visible_bias, "lr": rate * levels},
            {"params": hidden_bias, "lr": 3 * rate * levels},
        ]
    )
    return Training(
        rbm,
        patches * levels,
        CD(),
        optimizer=optimizer,
        epochs=recipe.epochs,
        batch_size=recipe.batch_size,
        transforms=[Sparsity(target=target * levels, rate=recipe.pressure)],
        schedule=torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - 0.9 * epoch / max(1, recipe.epochs)),
        callbacks=callbacks,
        generator=generator,
    )


def empty_filters(
    recipe: FeatureRecipe, channels: int, levels: int, *, generator: torch.Generator | None = None
) -> RBM:
    """Return filters of the right shapes, untrained; σ of the visible units stays at 1."""
    size = recipe.kernel
    make = units_with_levels(levels, k=1.0 / levels)
    coupling = Conv2d(channels, recipe.n_filters, kernel=size, generator=generator)
    rbm = RBM(Gaussian(channels, size, size), make(recipe.n_filters, 1, 1), coupling)
    _fix_sigma(rbm)
    return rbm


@torch.no_grad()
def on_images(rbm: RBM, shape: tuple[int, ...]) -> DBN:
    """Return the network with the filters of `rbm` on images of `shape`: the same parameters at every place."""
    channels, below, kernel, _ = rbm.weight.shape
    wide = Conv2d(below, channels, kernel=kernel)
    hidden = type(rbm.hidden)(*wide.upper_shape(shape), **rbm.hidden.arguments())
    machine = RBM(Gaussian(*shape), hidden, wide)
    _fix_sigma(machine)
    for new, old in ((machine.weight, rbm.weight), (machine.visible_bias, rbm.visible_bias)):
        new.copy_(old)
    machine.hidden_bias.copy_(rbm.hidden_bias)
    return DBN([machine])


def _fix_sigma(rbm: RBM) -> None:
    for parameter in rbm.visible.parameters():
        nn.init.zeros_(parameter).requires_grad_(False)
