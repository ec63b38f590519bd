"""A deep belief network for small color images: convolutions, principal components, a Gaussian-Bernoulli machine."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.draws import draw_normal
from harmonium.experiments.faces.recipe import FaceRecipe
from harmonium.laws.principal import PCAGaussian
from harmonium.models import DBN, RBM
from harmonium.samplers import sample
from harmonium.units import Bernoulli, Gaussian

_ROWS = 500  # images that go through the network at once


@torch.no_grad()
def principal_machine(x: Tensor, n_components: int) -> RBM:
    """Return the Gaussian-Gaussian RBM of maximum likelihood: probabilistic PCA (Tipping and Bishop 1999).

    Summing out h leaves the precision `1/σ² - w_i²/(σ⁴ s_i²)` of v along the i-th weight vector. It is `1/λ_i` with
    `w_i² = σ² s_i² (1 - σ²/λ_i)` along the eigenvector of the covariance with eigenvalue λ_i, where `σ²` is the mean of
    the eigenvalues left out. The spread `s_i² = 1/(λ_i/σ² - 1)` of hidden unit i gives `E[h_i | v]` variance 1 over the
    data. `x` is `(n, *shape)`.
    """
    d = math.prod(x.shape[1:])
    fitted = PCAGaussian.fit(x, n_components)
    variances, mean = fitted.variances.double(), fitted.mean.double()
    total = sum((part - fitted.mean).double().square().sum() for part in x.split(1000)) / len(x)
    rest = ((total - variances.sum()) / max(1, d - n_components)).clamp_min(1e-9)
    ratio = variances / rest
    if not bool((ratio > 1).all()):
        raise ValueError(
            f"`n_components` must be fewer: only {int((ratio > 1).sum())} of {n_components} components vary more than "
            "what is left out."
        )
    spread = (ratio - 1).rsqrt()
    weight = fitted.components.double().mT * (rest.sqrt() * spread * (1 - 1 / ratio).sqrt())
    shape = tuple(x.shape[1:])
    visible, hidden = Gaussian(*shape), Gaussian(n_components)
    rbm = RBM(visible, hidden)
    visible.log_sigma.fill_(rest.log().item() / 2)
    hidden.log_sigma.copy_(spread.log())
    rbm.weight.copy_(weight.reshape(rbm.weight.shape))
    center = -(mean.flatten() @ weight) / rest
    # with h = 0 at the mean image, the mean of v given h = 0 is that image
    rbm.hidden_bias.copy_(center)
    rbm.visible_bias.copy_(mean)
    return rbm.requires_grad_(False)


@torch.no_grad()
def top_machine(recipe: FaceRecipe, *, generator: torch.Generator | None = None) -> RBM:
    """Return a Gaussian-Bernoulli machine above codes of mean 0 and variance 1, untrained.

    A machine with weights near 0 would start at the Gaussian law, which fits all second moments and is hard to leave.
    So σ starts below 1, the weight vectors w_j at random with norm `recipe.norm`, and the biases at `-w_j²/2σ²`: a
    hidden unit is more often on than off where v is nearer to w_j than to 0.
    """
    d, sigma, norm = recipe.n_components, recipe.sigma, recipe.norm
    rbm = RBM(Gaussian(d, initial_sigma=sigma, floor=0.05), Bernoulli(recipe.n_hidden))
    rbm.weight.copy_(draw_normal(rbm.weight, generator=generator) * (norm / math.sqrt(d)))
    rbm.visible_bias.zero_()
    rbm.hidden_bias.fill_(-(norm**2) / (2 * sigma**2))
    return rbm


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
