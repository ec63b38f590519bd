"""Where learning starts."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from harmonium.models import BoltzmannMachine
from harmonium.types import Values, as_state

_MAX_ROWS = 100_000


@torch.no_grad()
def initialize(model: BoltzmannMachine, x: Values | Mapping[str, Values]) -> None:
    """Set the biases of the data's layers so that their means are those of the data, through `link`; σ to its spread.

    `x` is the data layer, or a mapping of layers; missing values (NaN) are left out. The couplings are left as they
    are: small.
    """
    some = next(model.parameters())
    for name, value in as_state(x, model.data_layer, like=some).items():
        if name in model.given:
            continue
        units = model.layer(name)
        rows = units.encoded(value[:_MAX_ROWS], like=some).to(dtype=some.dtype, device=some.device)
        units.check_shape(rows, name)
        rows = rows.reshape(-1, *units.shape)  # of sequences every frame counts
        units.fit_parameters(rows)
        bias = model.graph.biases.get(name)
        if bias is not None:
            bias.bias.copy_(bias.averaged(units.fitted_field(rows)))
