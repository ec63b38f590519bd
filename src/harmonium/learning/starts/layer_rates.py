"""Learning rates that suit every machine of a deep belief network."""

from __future__ import annotations

import math
from typing import Any

from torch import nn

from harmonium.models import DBN
from harmonium.units import Units


def layer_rates(dbn: DBN, rate: float) -> list[dict[str, Any]]:
    """Return parameter groups for an optimizer that moves every parameter by about its rate at a time, such as Adam.

    A hidden unit feels `kθ = k(c + Σ_i v_i W_i)` with v in 0..N from n units below, so that a step of size r in every
    weight moves it by up to `r k N n`. The weights get `rate / (k N √n)` and the biases `rate / (k √n)`, n counted
    downwards for the visible ones: one rate then means the same for any number of levels, any k and any width.

    >>> dbn = DBN.from_spec("dense 4, dense 2", shape=(100,))
    >>> [group["lr"] for group in layer_rates(dbn, 0.03)]
    [0.003, 0.015, 0.003, 0.015, 0.02121..., 0.015]
    """
    groups: list[dict[str, Any]] = []
    for rbm in (*dbn, *dbn.recognition):
        up, down = rbm.coupling.fans()
        steep_up, steep_down = rbm.hidden.steepness, rbm.visible.steepness
        of = {
            rbm.weight: rate / (steep_up * _range(rbm.visible) * math.sqrt(up)),
            rbm.visible_bias: rate / (steep_down * math.sqrt(down)),
            rbm.hidden_bias: rate / (steep_up * math.sqrt(up)),
        }
        groups += [{"params": [parameter], "lr": own} for parameter, own in of.items()]
        others: list[nn.Parameter] = [p for p in rbm.parameters() if all(p is not known for known in of)]
        if others:  # widths of units
            groups.append({"params": others, "lr": rate})
    return groups


def _range(units: Units) -> float:
    low, high = units.bounds()
    return high - low if math.isfinite(high - low) else 1.0
