"""Models of points in the plane: the density, the free energy, and samples beside data."""

from __future__ import annotations

import math

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from numpy.typing import NDArray
from torch import Tensor

from harmonium.evaluation.free_energies import free_energies
from harmonium.models import BoltzmannMachine
from harmonium.partition import log_z as estimate_log_z
from harmonium.plots.style import BLUE, INK, ORANGE, chart, colorbar, new_figure
from harmonium.types import EnergyModel, Estimate
from harmonium.units import Gaussian

Mesh = tuple[NDArray[np.float32], NDArray[np.float32]]
N_GRID = 160
_MASSES = (0.5, 0.9, 0.99)
_N_POINTS = 1000


def density_2d(model: EnergyModel, x: Tensor, log_z: Estimate | float | None = None) -> Figure:
    """Return the learned density `exp(-F(x) - log Z)` over the data, the regions of highest density, and σ.

    The lines enclose 50 %, 90 % and 99 % of the mass. `log_z` is estimated unless given; for a model that is no
    Boltzmann machine it is summed over a grid.
    """
    grid, free, extent = _field(model, x)
    cell = _cell(extent)
    z = plane_log_z(model, x) if log_z is None else log_z
    density = (-free - (z.value if isinstance(z, Estimate) else z)).exp()
    figure = new_figure(4.8, 4.0)
    axes = _plane(figure, "Learned density over the data", extent)
    shades = axes.contourf(*grid, density.numpy(), levels=_steps(density), cmap="Blues")
    axes.contour(*grid, density.numpy(), levels=mass_levels(density, cell), colors=INK, linewidths=(0.5, 0.8, 1.1))
    _dots(axes, x, ORANGE, "data")
    _sigma(axes, model, extent)
    colorbar(figure, axes, shades, "density")
    return figure


def free_energy_landscape(model: EnergyModel, x: Tensor) -> Figure:
    """Return `F(x)` over the plane, cut at 12 nats above its lowest value, with the data on it."""
    grid, free, extent = _field(model, x)
    figure = new_figure(4.8, 4.0)
    axes = _plane(figure, "Free energy", extent)
    low = free.min().item()
    high = min(free.max().item(), low + 12.0)
    levels = torch.linspace(low, high + 1e-3 if high > low else low + 1.0, 25).tolist()
    shades = axes.contourf(*grid, free.clamp(max=high).numpy(), levels=levels, cmap="cividis")
    _dots(axes, x, "white", "data")
    colorbar(figure, axes, shades, "F(x) in nats")
    return figure


def samples_2d(x: Tensor, samples: Tensor) -> Figure:
    """Return data and samples of the model side by side, on the same axes."""
    extent = _window(torch.cat([x, samples]))
    figure = new_figure(7.6, 3.7)
    for i, (name, points, color) in enumerate((("Data", x, ORANGE), ("Samples", samples, BLUE))):
        axes = _plane(figure, name, extent, (1, 2, i + 1))
        _dots(axes, points, color, name, alpha=0.6)
    return figure


def plane_log_z(model: EnergyModel, x: Tensor) -> Estimate:
    """Return log Z of a machine, or `log Σ e^{-F} ΔxΔy` over a window three times as wide and high as the data."""
    if isinstance(model, BoltzmannMachine):
        return estimate_log_z(model)
    _, free, extent = _field(model, x, 1.0)
    value = (-free).flatten().logsumexp(0).item() + math.log(_cell(extent))
    return Estimate(value, 0.0, value, value, "quadrature")


def mass_levels(density: Tensor, cell: float) -> list[float]:
    """Return the densities whose upper level sets hold 99 %, 90 % and 50 % of the mass on the grid, rising."""
    ordered = density.flatten().sort(descending=True).values
    mass = (ordered * cell).cumsum(0)
    mass = mass / mass[-1]
    found = [ordered[min(int(torch.searchsorted(mass, share)), len(ordered) - 1)].item() for share in _MASSES]
    return sorted(set(found))


def _field(model: EnergyModel, x: Tensor, margin: float = 0.2) -> tuple[Mesh, Tensor, tuple[float, ...]]:
    """Return the mesh, F at the middle of its cells, and the window around the data."""
    if x.ndim != 2 or x.shape[1] != 2:
        raise ValueError(f"`x` must be points in the plane, of shape (n, 2). Got {tuple(x.shape)}.")
    extent = _window(x, margin)
    sides = [
        torch.linspace(low + (high - low) / N_GRID / 2, high - (high - low) / N_GRID / 2, N_GRID)
        for low, high in (extent[:2], extent[2:])
    ]
    mesh = torch.meshgrid(*sides, indexing="xy")
    points = torch.stack([side.flatten() for side in mesh], dim=1).to(x)
    return (mesh[0].numpy(), mesh[1].numpy()), free_energies(model, points).reshape(N_GRID, N_GRID), extent


def _window(x: Tensor, margin: float = 0.2) -> tuple[float, ...]:
    """Return left, right, bottom and top: the data with a share of their range on every side."""
    low, high = x.amin(0).double(), x.amax(0).double()
    more = margin * (high - low).clamp_min(1e-6)
    return tuple(torch.stack([low - more, high + more], dim=1).flatten().tolist())


def _cell(extent: tuple[float, ...]) -> float:
    """Return the area of one cell of the grid."""
    return (extent[1] - extent[0]) * (extent[3] - extent[2]) / N_GRID**2


def _plane(figure: Figure, title: str, extent: tuple[float, ...], place: tuple[int, int, int] = (1, 1, 1)) -> Axes:
    axes = chart(figure, *place, title=title, x="x₁", y="x₂", grid=False)
    axes.set_xlim(extent[0], extent[1])
    axes.set_ylim(extent[2], extent[3])
    axes.set_aspect("equal")
    return axes


def _dots(axes: Axes, x: Tensor, color: str, label: str, alpha: float = 0.45) -> None:
    points = x[:_N_POINTS].detach().cpu().numpy()
    axes.scatter(points[:, 0], points[:, 1], s=5, color=color, alpha=alpha, linewidths=0, label=label)


def _steps(density: Tensor) -> list[float]:
    """Return the levels of the shades: from zero to the largest density."""
    return torch.linspace(0.0, density.max().item() or 1.0, 15).tolist()


def _sigma(axes: Axes, model: EnergyModel, extent: tuple[float, ...]) -> None:
    """Draw the spread σ of Gaussian units given the hidden layer, as an ellipse in a corner."""
    units = model.layer(model.data_layer) if isinstance(model, BoltzmannMachine) else None
    if not isinstance(units, Gaussian):
        return
    sx, sy = units.sigma.detach().flatten().tolist()
    left, bottom = extent[0], extent[2]
    place = (left + 1.4 * sx, bottom + 1.4 * sy)
    axes.add_patch(Ellipse(place, 2 * sx, 2 * sy, fill=False, color=INK, linewidth=1.0))
    text = axes.annotate(
        f"σ = ({sx:.2g}, {sy:.2g})", (place[0] + 1.3 * sx, place[1]), fontsize=8, color=INK, va="center"
    )
    text.set_bbox({"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 1.0})
