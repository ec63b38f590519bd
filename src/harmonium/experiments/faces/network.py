"""A deep belief network for small color images: convolutions, principal components, a Gaussian-Bernoulli machine."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.draws import draw_normal
from harmonium.experiments.faces.recipe import FaceRecipe
from harmonium.learning.starts import law_machine
from harmonium.models import DBN, RBM
from harmonium.samplers import sample
from harmonium.units import Gaussian

_ROWS = 500  # images that go through the network at once


def top_machine(recipe: FaceRecipe, *, generator: torch.Generator | None = None) -> RBM:
    """Return the machine above the codes, untrained."""
    d, n, sigma, norm = recipe.n_components, recipe.n_hidden, recipe.sigma, recipe.norm
    return law_machine(d, n, sigma=sigma, norm=norm, generator=generator)


def empty_lower_network(recipe: FaceRecipe, shape: tuple[int, ...]) -> DBN:
    """Return what lies below the top machine, of the right shapes: the layers with levels, then the codes."""
    stack = empty_stack(recipe, shape)
    below = stack.shapes[-1] if stack is not None else shape
    codes = RBM(Gaussian(*below), Gaussian(recipe.n_components))
    return with_machine(stack, codes).requires_grad_(False)


def empty_stack(recipe: FaceRecipe, shape: tuple[int, ...], *, generator: torch.Generator | None = None) -> DBN | None:
    """Return the machines of units with levels, untrained, untied if they will be tuned; None if there are none."""
    if not recipe.layers:
        return None
    stack = DBN.from_spec(
        recipe.layers,
        shape=shape,
        levels=recipe.levels,
        k=recipe.k,
        activation=recipe.activation,
        generator=generator,
    )
    return stack.untied() if recipe.tune_epochs else stack


def with_machine(dbn: DBN | None, rbm: RBM) -> DBN:
    """Return a network with one more machine at its top."""
    return DBN([rbm]) if dbn is None else DBN([*dbn, rbm], list(dbn.recognition))  # type: ignore[arg-type]


def values_of(dbn: DBN, x: Tensor) -> Tensor:
    """Return images in [0, 1] as the network takes them: 0..255 for multinary units, as they are for Gaussian ones."""
    high = dbn.visible.bounds()[1]
    return x * high if math.isfinite(high) else x


def pictures_of(dbn: DBN, v: Tensor) -> Tensor:
    """Return values of the network as images in [0, 1]."""
    high = dbn.visible.bounds()[1]
    return (v / high if math.isfinite(high) else v).clamp(0, 1)


@torch.no_grad()
def codes_of(dbn: DBN, x: Tensor) -> Tensor:
    """Return the codes of images in [0, 1], the level below the top machine."""
    level = len(dbn) - 1
    return torch.cat([dbn.enter(level, dbn.up(values_of(dbn, part), level)) for part in x.split(_ROWS)])


@torch.no_grad()
def images_of(dbn: DBN, codes: Tensor) -> Tensor:
    """Return the mean images in [0, 1] of codes."""
    level = len(dbn) - 1
    return torch.cat([pictures_of(dbn, dbn.down(dbn.leave(level, part), level)) for part in codes.split(_ROWS)])


@torch.no_grad()
def sample_faces(
    dbn: DBN,
    n: int,
    *,
    n_steps: int,
    start: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw images: `n_steps` of Gibbs sampling in the top machine, the code drawn, then its mean image, in [0, 1].

    Chains start at noise of the code's spread, or at the codes of the images `start`.
    """
    v = None if start is None else codes_of(dbn, start)
    return images_of(dbn, sample_codes(dbn, n, n_steps=n_steps, start=v, generator=generator))


@torch.no_grad()
def sample_codes(
    dbn: DBN, n: int, *, n_steps: int, start: Tensor | None = None, generator: torch.Generator | None = None
) -> Tensor:
    """Draw codes from the top machine, by chains that start at noise of the code's spread, or at `start`."""
    top = dbn[-1]
    code = top.visible_bias.expand(n, -1)
    v = code + draw_normal(code, generator=generator) if start is None else start
    return sample(top, n, n_steps=n_steps, start=v, generator=generator)


@torch.no_grad()
def reconstruct_faces(dbn: DBN, x: Tensor, depth: int | None = None) -> Tensor:
    """Return images after going up to a level and down again by means, in [0, 1]."""
    return pictures_of(dbn, dbn.reconstruct(values_of(dbn, x), depth))
