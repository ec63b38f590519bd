"""A start for Gaussian RBMs in few dimensions: a mixture whose components lie apart."""

from __future__ import annotations

import math

import torch

from harmonium.couplings import Dense
from harmonium.draws import draw_normal
from harmonium.models import RBM
from harmonium.units import Gaussian


def is_mixture(rbm: RBM) -> bool:
    """Return whether p(x) is a sum of Gaussians, one a hidden state: with unbounded ones, far apart, it has no Z."""
    return isinstance(rbm.visible, Gaussian) and rbm.hidden.support == "finite" and isinstance(rbm.coupling, Dense)


@torch.no_grad()
def spread_components(rbm: RBM, scale: float, *, generator: torch.Generator | None = None) -> None:
    """Start a Gaussian RBM as a mixture whose components lie apart: `W_ij ~ scale · σ_i N(0, 1)`.

    Given z, `x ~ N(b + Wz, (scale σ)²)`, and `c_j = -(bᵀW_j + ½‖W_j‖²)/σ²` makes one active unit as probable as none.
    """
    if not isinstance(rbm.visible, Gaussian):
        raise ValueError(f"`weight_scale` is for Gaussian visible units. Got {rbm.visible!r}. Leave it out.")
    if not isinstance(rbm.coupling, Dense):
        raise ValueError(f"`weight_scale` is for a Dense coupling. Got {rbm.coupling!r}. Leave it out.")
    visible = rbm.visible
    spread = visible.sigma.clone().flatten()
    rbm.weight.copy_(scale * spread[:, None] * draw_normal(rbm.weight, generator=generator))
    visible.log_sigma.add_(math.log(scale))
    bias, variance = rbm.visible_bias.flatten(), visible.sigma.square().flatten()
    balance = -(((bias[:, None] + rbm.weight / 2) * rbm.weight) / variance[:, None]).sum(0)
    rbm.hidden_bias.copy_(balance.reshape(rbm.hidden_bias.shape))
