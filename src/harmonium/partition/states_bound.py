"""A lower bound of log Z from the states that one has."""

from __future__ import annotations

import copy

import torch

from harmonium.models import BoltzmannMachine
from harmonium.partition.exact import counted_layers
from harmonium.types import State

_ROWS = 1024


@torch.no_grad()
def states_bound(model: BoltzmannMachine, states: State) -> float:
    """Return `log Σ e^{-F(x)} ≤ log Z` over the distinct states x of some finite layers, the others summed out.

    It holds whatever the states are: data, ends of chains, modes. A layer that is not finite cannot be among them; of a
    machine with Gaussian data, give its hidden states.

    >>> rbm = RBM(Bernoulli(3), Bernoulli(2))
    >>> states_bound(rbm, {"hidden": torch.tensor([[0.0, 1.0], [0.0, 1.0]])}) < exact_log_z(rbm).value
    True
    """
    for name in states:
        if model.layer(name).n_configurations() is None:
            raise ValueError(
                f"States of layer {name!r} have a density, not a probability: they cannot be added up. Give the states "
                "of a finite layer."
            )
    n = len(next(iter(states.values())))
    flat = torch.cat([value.reshape(n, -1) for value in states.values()], 1)
    _, inverse = flat.unique(dim=0, return_inverse=True)
    first = torch.zeros(int(inverse.max()) + 1, dtype=torch.int64).scatter_(0, inverse.cpu(), torch.arange(n))
    machine = copy.deepcopy(model).double()
    total = torch.tensor(-torch.inf, dtype=torch.float64)
    for rows in first.split(_ROWS):
        part = {name: value[rows.to(value.device)].double() for name, value in states.items()}
        total = torch.logaddexp(total, (-machine.energy(part)).logsumexp(0).cpu())
    return total.item()


def finite_layers(model: BoltzmannMachine) -> tuple[str, ...]:
    """Return the layers whose states can be added up, the rest being summed out in closed form; none if there are none.

    >>> finite_layers(RBM(Gaussian(2), Bernoulli(16)))
    ('hidden',)
    """
    layers, n = counted_layers(model)
    return () if n is None else layers
