"""Known answers by quadrature: densities of energies in one and two dimensions."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.types import EnergyModel


def line(low: float, high: float, n: int = 4001, dtype: torch.dtype = torch.float64) -> tuple[Tensor, float]:
    """Return points `(n, 1)` and their spacing."""
    points = torch.linspace(low, high, n, dtype=torch.float64)
    return points.to(dtype)[:, None], float(points[1] - points[0])


def plane(low: float, high: float, n: int = 161, dtype: torch.dtype = torch.float32) -> tuple[Tensor, float]:
    """Return points `(n², 2)` and the area of a cell."""
    axis = torch.linspace(low, high, n, dtype=torch.float64)
    x = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    return x.to(dtype), float(axis[1] - axis[0]) ** 2


@torch.no_grad()
def log_z_on(model: EnergyModel, x: Tensor, cell: float) -> float:
    """Return log ∫ e^{-F} over the grid."""
    return float((-model.free_energy(x).double()).logsumexp(0) + torch.tensor(cell, dtype=torch.float64).log())


@torch.no_grad()
def kl_from(log_p: Tensor, model: EnergyModel, x: Tensor, cell: float) -> float:
    """Return `KL(p ‖ model)` in nats on a grid, the model normalized there."""
    log_q = -model.free_energy(x).double() - log_z_on(model, x, cell)
    p = log_p.double().exp() * cell
    return float((p * (log_p.double() - log_q)).sum() / p.sum())


def draw_from(model: EnergyModel, x: Tensor, n: int, *, generator: torch.Generator) -> Tensor:
    """Draw `n` points of the law of a model on an even grid on a line, exactly: by its cumulative sum."""
    with torch.no_grad():
        cumulative = (-model.free_energy(x).double()).softmax(0).cumsum(0)
    u = torch.rand(n, generator=generator, dtype=torch.float64)
    index = torch.searchsorted(cumulative, u).clamp_max(len(x) - 1)
    jitter = (torch.rand(n, 1, generator=generator, dtype=x.dtype) - 0.5) * (x[1] - x[0])
    return x[index] + jitter


class Quadratic(torch.nn.Module):
    """`E(x) = ‖x‖²/2·exp(2 log_std)`, a Gaussian as a network."""

    def __init__(self, std: float = 1.0, n: int = 2, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        self.log_std = torch.nn.Parameter(torch.tensor(std, dtype=dtype).log())
        self.shape = (n,)

    def forward(self, x: Tensor) -> Tensor:
        return x.square().sum(-1) / (2 * (2 * self.log_std).exp())
