"""A deep belief network for small color images: principal components below, a Gaussian-Bernoulli machine on top."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import interpolate

from harmonium.evaluation.gaussian_baselines import PCAGaussian
from harmonium.models import DBN, RBM
from harmonium.types import draw_normal
from harmonium.units import Bernoulli, Gaussian

LUMINANCE = (0.299, 0.587, 0.114)
"""Red, green and blue in a gray value (ITU-R BT.601)."""


@dataclass(frozen=True)
class FaceRecipe:
    """How the network is built and learns. `minutes` is what its `epochs` take on one free core."""

    n_components: int = 200
    n_hidden: int = 500
    epochs: int = 300
    minutes: float = 5.0
    batch_size: int = 100
    n_chains: int = 100
    n_steps: int = 1
    learning_rate: float = 3e-3
    average: float = 0.999
    sigma: float = 0.6
    norm: float = 1.5

    def within(self, budget: float) -> FaceRecipe:
        """Return the recipe with as many epochs as fit into `budget` minutes on one free core.

        >>> FaceRecipe(epochs=200, minutes=10).within(5).epochs
        100
        """
        if not budget > 0:
            raise ValueError(f"`budget` must be a positive number of minutes. Got {budget}.")
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        epochs = max(1, round(self.epochs * budget / self.minutes))
        return FaceRecipe(**fields | {"epochs": epochs, "minutes": budget})


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
    So σ starts below 1, weight vectors at random with norm `recipe.norm`, and the hidden units seldom on.
    """
    d, sigma, norm = recipe.n_components, recipe.sigma, recipe.norm
    rbm = RBM(Gaussian(d, initial_sigma=sigma, floor=0.05), Bernoulli(recipe.n_hidden))
    rbm.weight.copy_(draw_normal(rbm.weight, generator=generator) * (norm / math.sqrt(d)))
    rbm.visible_bias.zero_()
    rbm.hidden_bias.fill_(-(norm**2) / (2 * sigma**2) - 2)
    return rbm


def build_face_network(recipe: FaceRecipe, x: Tensor, *, generator: torch.Generator | None = None) -> DBN:
    """Return the network for images `(n, channels, height, width)` in [0, 1], its top machine untrained."""
    return DBN([principal_machine(x, recipe.n_components), top_machine(recipe, generator=generator)])


def empty_face_network(recipe: FaceRecipe, shape: tuple[int, ...]) -> DBN:
    """Return a network of the right shapes, for parameters that are read from a file."""
    below = RBM(Gaussian(*shape), Gaussian(recipe.n_components)).requires_grad_(False)
    return DBN([below, top_machine(recipe)])


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
    top, level = dbn[-1], len(dbn) - 1
    code = top.visible_bias.expand(n, -1)
    v = code + draw_normal(code, generator=generator) if start is None else dbn.enter(level, dbn.up(start, level))
    for _ in range(n_steps):
        h = top.sample("hidden", {"visible": v}, generator=generator)
        v = top.sample("visible", {"hidden": h}, generator=generator)
    return dbn.down(dbn.leave(level, v), level).clamp(0, 1)


@torch.no_grad()
def reconstruct_faces(dbn: DBN, x: Tensor, depth: int | None = None) -> Tensor:
    """Return images after going up to a level and down again by means, in [0, 1]."""
    return dbn.reconstruct(x, depth).clamp(0, 1)


def gray_of(x: Tensor) -> Tensor:
    """Return the gray values `(n, 1, height, width)` of color images.

    >>> gray_of(torch.ones(1, 3, 1, 1)).item()
    1.0
    """
    weight = x.new_tensor(LUMINANCE).view(3, 1, 1)
    return (x * weight).sum(-3, keepdim=True)


@torch.no_grad()
def color_faces(dbn: DBN, gray: Tensor, *, depth: int = 1, n_steps: int = 100) -> Tensor:
    """Return color images whose gray values are those given: the network fills in what they leave open.

    Starting from gray, each step reconstructs the image from level `depth` and puts the given gray values back, which
    alternates projections onto the images that the network knows and onto those with this gray. `gray` is
    `(n, 1, height, width)` in [0, 1].
    """
    x = dbn[0].visible_bias + (gray - gray_of(dbn[0].visible_bias))
    for _ in range(n_steps):
        made = dbn.reconstruct(x, depth)
        x = made + (gray - gray_of(made))
    return x.clamp(0, 1)


def fitted_size(x: Tensor, size: int) -> Tensor:
    """Return images resized to `size` x `size`, in [0, 1]."""
    if x.shape[-1] == size and x.shape[-2] == size:
        return x
    return interpolate(x, size=(size, size), mode="bicubic", align_corners=False, antialias=True).clamp(0, 1)
