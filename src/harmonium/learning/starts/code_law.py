"""A law for the codes of a stack: two machines above it, the one in closed form, the other to be learned."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.draws import draw_normal
from harmonium.laws.principal import PCAGaussian
from harmonium.models import RBM
from harmonium.units import Bernoulli, Gaussian

_OF_LEAST = 0.01


@torch.no_grad()
def principal_machine(x: Tensor, n_components: int) -> RBM:
    """Return the Gaussian-Gaussian RBM of maximum likelihood: probabilistic PCA (Tipping and Bishop 1999).

    Summing out h leaves the precision `1/σ² - w_i²/(σ⁴ s_i²)` of v along the i-th weight vector. It is `1/λ_i` with
    `w_i² = σ² s_i² (1 - σ²/λ_i)` along the eigenvector of the covariance with eigenvalue λ_i, where `σ²` is the mean of
    the eigenvalues left out. The spread `s_i² = 1/(λ_i/σ² - 1)` of hidden unit i gives `E[h_i | v]` variance 1 over the
    data. `x` is `(n, *shape)`. With as many components as values nothing is left out: σ² is then a hundredth of the
    least eigenvalue, and v comes back within a hundredth.
    """
    d = math.prod(x.shape[1:])
    fitted = PCAGaussian.fit(x, n_components)
    variances, mean = fitted.variances.double(), fitted.mean.double()
    total = sum((part - fitted.mean).double().square().sum() for part in x.split(1000)) / len(x)
    rest = (total - variances.sum()) / (d - n_components) if n_components < d else variances.min() * _OF_LEAST
    rest = rest.clamp_min(1e-9)
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
def law_machine(
    n_codes: int, n_hidden: int, *, sigma: float = 0.6, norm: float = 0.8, generator: torch.Generator | None = None
) -> RBM:
    """Return a Gaussian-Bernoulli machine above codes of mean 0 and variance 1, untrained.

    A machine with weights near 0 would start at the Gaussian law, which fits all second moments and is hard to leave.
    So σ starts below 1, the weight vectors w_j at random with length `norm`, and the biases at `-w_j²/2σ²`: a hidden
    unit is more often on than off where v is nearer to w_j than to 0.
    """
    rbm = RBM(Gaussian(n_codes, initial_sigma=sigma, floor=0.05), Bernoulli(n_hidden))
    rbm.weight.copy_(draw_normal(rbm.weight, generator=generator) * (norm / math.sqrt(n_codes)))
    rbm.visible_bias.zero_()
    rbm.hidden_bias.fill_(-(norm**2) / (2 * sigma**2))
    return rbm
