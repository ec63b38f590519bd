"""Chains that any number of workers can carry: estimates, samples and likelihoods, for the tests of division."""

from __future__ import annotations

import numpy as np
import torch

import harmonium as hm
from harmonium import workers
from harmonium.networks import MLP
from harmonium.partition import mean_field_modes
from harmonium.samplers import MALA, ParallelTempering
from harmonium.testing import scatter

N = 9


def seeded() -> torch.Generator:
    """Return a generator in the same state for all workers."""
    return torch.Generator().manual_seed(4)


def numbers() -> dict[str, np.ndarray]:
    """Return what is drawn and estimated, by name."""
    rbm = scatter(hm.RBM(hm.Bernoulli(6), hm.Bernoulli(4)), scale=0.5)
    given = torch.tensor([1.0, torch.nan, 0.0, torch.nan, torch.nan, 1.0], dtype=torch.float64)
    labeled = scatter(hm.ClassRBM(hm.Bernoulli(6), hm.Bernoulli(4), 3), scale=0.5)
    torch.manual_seed(0)
    energy = hm.NeuralEBM(MLP(2).double(), 2)
    dbn = hm.DBN([rbm, scatter(hm.RBM(hm.Bernoulli(4), hm.Bernoulli(3)), scale=0.5)])
    x = hm.sample(rbm, N, n_steps=3, generator=seeded())
    found = {
        "Gibbs": x,
        "given": hm.sample(rbm, N, n_steps=3, given=given, generator=seeded()),
        "a row each": hm.sample(rbm, N, n_steps=3, given=x.masked_fill(x == 0, torch.nan), generator=seeded()),
        "given classes": hm.sample(labeled, N, n_steps=3, given={"label": torch.arange(N) % 3}, generator=seeded()),
        "tempering": hm.sample(rbm, N, n_steps=3, sampler=ParallelTempering(), generator=seeded()),
        "MALA": hm.sample(energy, N, n_steps=3, sampler=MALA(0.1), generator=seeded()),
        "deep": hm.sample(dbn, N, n_steps=3, generator=seeded()),
        "modes": mean_field_modes(rbm, n_starts=9, generator=seeded()).bounds,
        "likelihood": hm.log_likelihood(rbm, x).value,
        "features": workers.by_rows(rbm.hidden_mean, x),
    }
    for name, estimate in {
        "ais": hm.ais(rbm, n_chains=21, n_betas=20, generator=seeded()),
        "sandwich": hm.log_z(rbm, method="sandwich", n_chains=33, n_betas=20, n_steps=5, generator=seeded()),
        "of a network": hm.ais(energy, n_chains=21, n_betas=20, generator=seeded()),
    }.items():
        found[name] = torch.tensor([estimate.value, estimate.lower, estimate.upper], dtype=torch.float64)
    return {name: value.detach().numpy() for name, value in found.items()}


def refused() -> str:
    """Return what a worker is told of a bad row that another one has."""
    rbm = hm.RBM(hm.Bernoulli(6), hm.Bernoulli(4))
    x = torch.zeros(N, 6)
    x[-1] = 0.5
    try:
        hm.log_likelihood(rbm, x)
    except ValueError as error:
        return str(error)
    return ""
