"""Where learning starts."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.couplings import Bias
from harmonium.models import BoltzmannMachine
from harmonium.units import Gaussian, Mixed, Units

_MAX_ROWS = 100_000


@torch.no_grad()
def initialize(model: BoltzmannMachine, x: Tensor) -> None:
    """Set the biases of the data layer so that its mean is that of the data, through `link`; σ to the data's spread.

    The couplings are left as they are: small.
    """
    units = model.layer(model.data_layer)
    some = next(model.parameters())
    rows = x[:_MAX_ROWS].to(dtype=some.dtype, device=some.device)
    units.check_shape(rows, "x")
    for part, values in _gaussian_parts(units, rows):
        known = values.isfinite()
        n = known.sum(0).clamp_min(1)
        mean = values.where(known, 0.0).sum(0) / n
        variance = (values - mean).square().where(known, 0.0).sum(0) / n
        part.log_sigma.copy_(variance.sqrt().clamp_min(part.floor).log())
    field = units.fitted_field(rows)
    for layers, coupling in model.terms:
        if layers == (model.data_layer,) and isinstance(coupling, Bias):
            shape = coupling.bias.shape
            coupling.bias.copy_(field.sum_to_size(shape) * (coupling.bias.numel() / field.numel()))


def _gaussian_parts(units: Units, rows: Tensor) -> list[tuple[Gaussian, Tensor]]:
    if isinstance(units, Mixed):
        pairs = zip(units.parts, units.split(rows), strict=True)
        return [(part, values) for part, values in pairs if isinstance(part, Gaussian)]
    return [(units, rows)] if isinstance(units, Gaussian) else []
