"""Z by counting."""

from __future__ import annotations

import copy
import math

import torch

from harmonium.models import BoltzmannMachine
from harmonium.models.enumeration import counted_layers as counted_layers
from harmonium.partition.proper import check_proper
from harmonium.types import Estimate, State

MAX_STATES = 2**25
"""The most states that are counted one by one."""

_CHUNK = 2**22  # numbers held at once


@torch.no_grad()
def exact_log_z(model: BoltzmannMachine) -> Estimate:
    """Return `log Z = log Σ_x e^{-E(x)}` (eq. 6.35) by enumerating the fewest layers.

    The others are summed in closed form. An RBM is summed over the smaller of its sides; a Gaussian-Bernoulli RBM over
    its hidden states, a mixture of 2ⁿ Gaussians. Streams in float64 and takes up to 2²⁵ states.

    >>> rbm = RBM(Bernoulli(3), Bernoulli(2))
    >>> with torch.no_grad():
    ...     _ = rbm.weight.zero_()
    >>> print(exact_log_z(rbm))
    3.465735903 (exact)
    """
    check_proper(model)
    layers, n_states = counted_layers(model)
    if n_states is None or n_states > MAX_STATES:
        size = "infinitely many" if n_states is None else f"about 2^{math.log2(n_states):.0f}"
        raise ValueError(
            f"The exact log Z would count {size} states of layers {list(layers)}; the limit is 2^25. "
            "Use harmonium.ais or harmonium.log_z, which estimate it with error bars."
        )
    machine = copy.deepcopy(model).double()
    if not layers:  # one layer and its biases: nothing to count
        fields = ((machine.layer(name), machine.bias_field(name)) for name in machine.layers)
        value = sum(units.log_partition(field).sum().item() for units, field in fields)
        return Estimate(value, 0.0, value, value, "exact", at_least=value, at_most=value)
    width = sum(math.prod(machine.layer(name).shape) for name in machine.layers)
    total = torch.tensor(-torch.inf, dtype=torch.float64)
    chunk = max(1, _CHUNK // width)
    device = next(machine.parameters()).device
    for start in range(0, n_states, chunk):
        index = torch.arange(start, min(start + chunk, n_states), device=device)
        state: State = {}
        for name in reversed(layers):
            n = machine.layer(name).n_configurations() or 1
            state[name] = machine.layer(name).configurations(index % n)
            index = index // n
        total = torch.logaddexp(total, (-machine.energy(state)).logsumexp(0).cpu())
    value = total.item()
    if not math.isfinite(value):
        raise ValueError(f"log Z is {value}: the energies overflow or Z is infinite. Check the parameters for NaN.")
    return Estimate(value, 0.0, value, value, "exact", at_least=value, at_most=value)
