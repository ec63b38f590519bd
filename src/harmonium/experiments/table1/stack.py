"""The layers of a stack: the basis that filters are found in, the machine that learns them, the network they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from harmonium.couplings import Conv2d
from harmonium.data import draw_patches
from harmonium.draws import draw_permutation
from harmonium.experiments.table1.filter_sources import unlearned_filters
from harmonium.experiments.table1.stack_recipe import StackRecipe
from harmonium.learning import Callback, Training
from harmonium.learning.objectives import CD
from harmonium.models import DBN, RBM
from harmonium.models.dbn_spec import units_with_levels
from harmonium.units import Gaussian, MaxPooled, Units

_ROWS = 20_000


class Layer(NamedTuple):
    """Filters on maps of 0..1: units are at `g(weight ⋆ x + bias)` of their levels."""

    weight: Tensor
    bias: Tensor


@dataclass(frozen=True, eq=False)
class Basis:
    """Coordinates of patches: `y = (x - mean) axes`, of variance 1 all together."""

    mean: Tensor
    axes: Tensor

    def coordinates(self, patches: Tensor) -> Tensor:
        """Return the rows y of patches `(n, channels, size, size)`."""
        return (patches.flatten(1) - self.mean) @ self.axes


@dataclass(frozen=True)
class LevelUnits:
    """The units of all layers: levels 0..N with activity `N g(kθ)`, k = 1/N unless told."""

    levels: int = 255
    k: float | None = None
    activation: str = "relu"

    @property
    def steepness(self) -> float:
        """The k of the units."""
        return 1.0 / self.levels if self.k is None else self.k

    def make(self, *shape: int) -> Units:
        """Return a layer of these units."""
        return units_with_levels(self.levels, k=self.steepness, activation=self.activation)(*shape)

    def pooled(self, channels: int, height: int, width: int, block: int) -> Units:
        """Return a layer of these units, of which at most one in each block is not 0."""
        if block == 1:
            return self.make(channels, height, width)
        return MaxPooled(channels, height, width, block, self.levels, self.steepness, self.activation)


def draw_layer_patches(
    recipe: StackRecipe, i: int, maps: Tensor, *, generator: torch.Generator | None = None
) -> Tensor:
    """Draw the patches that layer i learns from; of images, those with a spread below `min_spread` are left out."""
    patches = draw_patches(maps, recipe.n_patches, recipe.kernels[i], generator=generator)
    return patches[patches.flatten(1).std(1) >= recipe.min_spread] if i == 0 else patches


def fit_basis(recipe: StackRecipe, i: int, patches: Tensor) -> Basis:
    """Return the coordinates of layer i: principal components, made white.

    Component j has the weight `(λ_j + flatness · λ̄)^{-1/2}`, with λ̄ the mean of the variances λ that are kept.
    """
    rows = patches.flatten(1)
    if not (n := recipe.n_components[i]):
        return Basis(rows.new_zeros(rows.shape[1]), torch.eye(rows.shape[1]))
    mean = rows.mean(0)
    centered = rows - mean
    variances, axes = torch.linalg.eigh(centered.mT @ centered / len(rows))
    variances, axes = variances.flip(0)[:n].clamp_min(0), axes.flip(1)[:, :n]
    axes = axes / (variances + recipe.flatness * variances.mean()).sqrt()
    return Basis(mean, axes / (centered[:_ROWS] @ axes).std())


def layer_training(
    recipe: StackRecipe,
    i: int,
    y: Tensor,
    units: LevelUnits,
    *,
    generator: torch.Generator | None = None,
    callbacks: Sequence[Callback] = (),
) -> Training:
    """Return the training of layer i on the coordinates of its patches, before its first update: CD-1.

    The visible units are Gaussian with σ = 1 and see `N y`; the activity is `h/N = g(kc + kN Wᵀy)` for the unit of each
    group that is on and the reconstruction `W h/N + b/N`, so that with k = 1/N the levels change the noise and nothing
    else. The rates of the biases, whose scale is N, are multiplied by it.
    """
    rbm = layer_machine(recipe, i, y, units, generator=generator)
    rates = zip(rbm.couplings, (1, units.levels, units.levels), strict=True)
    optimizer = torch.optim.Adam(
        [{"params": list(part.parameters()), "lr": scale * recipe.learning_rate} for part, scale in rates]
    )
    return Training(
        rbm,
        y * (recipe.contrast * units.levels),
        CD(),
        optimizer=optimizer,
        epochs=recipe.epochs,
        batch_size=recipe.batch_size,
        schedule=torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - 0.9 * epoch / max(1, recipe.epochs)),
        callbacks=callbacks,
        generator=generator,
    )


@torch.no_grad()
def layer_machine(
    recipe: StackRecipe, i: int, y: Tensor, units: LevelUnits, *, generator: torch.Generator | None = None
) -> RBM:
    """Return the machine of layer i at its start: its filters are patches of length ½."""
    side = recipe.sides[i]
    rbm = RBM(Gaussian(y.shape[1]), units.pooled(recipe.groups[i], side, side, side))
    _fix_sigma(rbm)
    rbm.weight.copy_(unlearned_filters("patches", y, recipe.n_filters[i], generator=generator).mT / 2)
    return rbm


def layer_of(recipe: StackRecipe, i: int, filters: Tensor, basis: Basis, patches: Tensor) -> Layer:
    """Return layer i from filters (rows of length 1 in the basis), each with both signs."""
    z = basis.coordinates(patches[:_ROWS]) @ filters.mT
    scale = recipe.reaches[i] * float(z.std())
    weight = filters @ basis.axes.mT / scale
    shift, threshold = weight @ basis.mean, recipe.thresholds[i] / recipe.reaches[i]
    both = torch.cat([weight, -weight]).reshape(2 * len(weight), *patches.shape[1:])
    return Layer(both, torch.cat([-shift, shift]) - threshold)


@torch.no_grad()
def network_of(recipe: StackRecipe, layers: Sequence[Layer], shape: tuple[int, ...], units: LevelUnits) -> DBN:
    """Return the network of the layers on images of `shape`, which it takes times N."""
    machines = []
    for layer, pool in zip(layers, recipe.pools, strict=False):
        n, channels, kernel, _ = layer.weight.shape
        coupling = Conv2d(channels, n, kernel=kernel)
        hidden = units.pooled(*coupling.upper_shape(shape), pool)
        rbm = RBM(Gaussian(*shape), hidden, coupling)
        _fix_sigma(rbm)
        rbm.weight.copy_(layer.weight)
        rbm.hidden_bias.copy_((units.levels * layer.bias).reshape(rbm.hidden_bias.shape))
        machines.append(rbm)
        shape = hidden.pooled_shape if isinstance(hidden, MaxPooled) else hidden.shape
    return DBN(machines)


def some_images(x: Tensor, n: int, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw n images, or all if there are fewer."""
    return x[draw_permutation(len(x), generator=generator)[:n]]


def _fix_sigma(rbm: RBM) -> None:
    for parameter in rbm.visible.parameters():
        nn.init.zeros_(parameter).requires_grad_(False)
