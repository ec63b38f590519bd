"""Gibbs sampling as a matrix, and with it what contrastive divergence does on average."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.models import RBM
from harmonium.models.summation import configurations


@torch.no_grad()
def gibbs_matrix(rbm: RBM) -> tuple[Tensor, Tensor]:
    """Return the states of the visible layer and `K(v, v') = Σ_h p(h | v) p(v' | h)`: one step of Gibbs sampling.

    >>> from harmonium.testing import tiny_rbm
    >>> gibbs_matrix(tiny_rbm("Bernoulli", "Spin"))[1].sum(1).sub(1).abs().max().item() < 1e-12
    True
    """
    sizes = [rbm.layer(name).n_configurations() for name in rbm.layers]
    if None in sizes:
        raise ValueError(f"Only machines of finite layers have a matrix. Got {rbm.visible!r} and {rbm.hidden!r}.")
    v, h = (configurations(rbm, (name,), {})[name] for name in rbm.layers)
    joint = -rbm.energy({"visible": v.unsqueeze(1), "hidden": h.expand(len(v), *h.shape)})
    return v, joint.softmax(1) @ joint.softmax(0).t()


def expected_cd_gradient(rbm: RBM, data: Tensor, n_steps: int) -> Tensor:
    """Return the mean gradient of CD with so many steps, `Σ_v (q - qKᵏ)(v) ∂F(v)`, for data of law q over all states.

    The limit of many steps is the gradient of the negative log-likelihood: what is left until then is the bias of CD.
    """
    states, kernel = gibbs_matrix(rbm)
    chains = data
    for _ in range(n_steps):
        chains = chains @ kernel
    rbm.zero_grad(set_to_none=True)
    rbm.accumulate_grad(states, data - chains)
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in rbm.parameters()]
    rbm.zero_grad(set_to_none=True)
    return torch.cat([part.flatten() for part in parts])
