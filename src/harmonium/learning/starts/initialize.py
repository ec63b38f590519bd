"""Where learning starts."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from harmonium.learning.sparse_rows import SparseRows
from harmonium.models import BoltzmannMachine
from harmonium.types import Values, as_state

_MAX_ROWS = 100_000
_MOST_NUMBERS = 2**22


@torch.no_grad()
def initialize(model: BoltzmannMachine, x: Values | Mapping[str, Values]) -> None:
    """Set the biases of the data's layers so that their means are those of the data, through `link`; σ to its spread.

    `x` is the data layer, or a mapping of layers; missing values (NaN) are left out. The couplings are left as they
    are: small. Of sparse rows all count for the means, and a few for σ.
    """
    some = next(model.parameters())
    parts = x if isinstance(x, Mapping) else {model.data_layer: x}
    sparse = {name: value for name, value in parts.items() if isinstance(value, SparseRows)}
    for name, kept in sparse.items():
        units, bias = model.layer(name), model.graph.biases.get(name)
        few = kept.rows(torch.arange(min(len(kept), max(1, _MOST_NUMBERS // kept.shape[1]))))
        units.check_shape(few, name)
        units.fit_parameters(few)
        if bias is not None:
            bias.bias.copy_(bias.averaged(units.field_of_sums(kept.sums(), torch.tensor(len(kept)))))
    dense = {name: value for name, value in parts.items() if name not in sparse}
    for name, value in as_state(dense, model.data_layer, like=some).items():
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
