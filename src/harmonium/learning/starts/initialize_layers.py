"""Where the learning of a deep belief network starts."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.learning.starts.initialize import initialize
from harmonium.models import DBN, RBM
from harmonium.units import Multinary, Units

_N_ROUNDS = 6


@torch.no_grad()
def initialize_layers(dbn: DBN, x: Tensor, *, spread: float | None = 0.1) -> None:
    """Start every machine at the data that it will see, the lowest first, with fields of a known spread.

    The weights are scaled so that the field up and the field down, each times the steepness k of its units, vary over
    the data with a standard deviation of at most `spread` (after Mishkin and Matas 2016; None leaves the weights). The
    hidden biases then take away the mean of the field, so that hidden units start in the middle of their range, and the
    visible ones make the reconstruction from the mean of the hidden layer the mean of the data. A few hundred rows do.
    """
    weight = dbn[0].weight
    z = x.to(dtype=weight.dtype, device=weight.device)
    for i, rbm in enumerate(dbn):
        v = dbn.enter(i, z)
        initialize(rbm, v)
        _start(rbm, v, spread)
        z = dbn.pass_up(i, dbn.hidden_mean(i, v))


def _start(rbm: RBM, v: Tensor, spread: float | None) -> None:
    below, above = rbm.layers
    rbm.hidden_bias.zero_()
    middle = _middle_field(rbm.hidden)
    for _ in range(_N_ROUNDS if spread else 0):
        up = rbm.field(above, {below: v})
        down = rbm.field(below, {above: rbm.hidden.mean(up - up.mean(0) + middle)})
        factor = (spread or 1.0) / max(wide := _spread(rbm.hidden, up), wide_down := _spread(rbm.visible, down), 1e-12)
        # Downwards the hidden layer widens with the weights: the field grows with up to their square.
        rbm.weight.mul_(factor if wide > wide_down else factor**0.5)
    up = rbm.field(above, {below: v})
    rbm.hidden_bias.copy_(rbm.graph.biases[above].averaged(middle - up.mean(0)))
    h = rbm.mean(above, {below: v}).mean(0, keepdim=True)
    down = rbm.field(below, {above: h})[0] - rbm.visible_bias
    rbm.visible_bias.sub_(rbm.graph.biases[below].averaged(down))


def _middle_field(units: Units) -> float:
    """Return the field at which hidden units are in the middle of their range: ½/k where they follow a clipped ramp."""
    return float(units.link(torch.tensor(units.levels / 2))) if isinstance(units, Multinary) else 0.0


def _spread(units: Units, field: Tensor) -> float:
    """Return the standard deviation of a field over the data, in the units' own measure `kθ`."""
    return float((field - field.mean(0)).std()) * units.steepness
