"""The slope of the energy, for samplers that follow it."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.types import EnergyModel


def energy_and_slope(model: EnergyModel, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return `F(x)` and `∂F/∂x`; no graph is kept and no gradient of a parameter is computed.

    Loops over many steps freeze the parameters once (`models.frozen`), which leaves even their part of the graph out.
    """
    point = x.detach().requires_grad_()
    with torch.enable_grad():
        energy = model.free_energy(point)
        (slope,) = torch.autograd.grad(energy.sum(), point)
    return energy.detach(), slope


def check_continuous(model: EnergyModel, sampler: str) -> None:
    """Raise if the data layer of a machine is not real-valued: there is no slope to follow."""
    if isinstance(model, BoltzmannMachine) and model.layer(model.data_layer).support != "real":
        units = model.layer(model.data_layer)
        raise TypeError(
            f"{sampler} follows the slope of the energy and needs real-valued units. Got {model.data_layer}={units!r}. "
            "Use Gibbs or Metropolis, or build the model with Gaussian units."
        )
