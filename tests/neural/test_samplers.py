"""Chains on tiny neural energies, held against quadrature."""

from __future__ import annotations

import math

import pytest
import torch

import harmonium as hm
from tests.neural.quadrature import Quadratic, draw_from, line


@pytest.fixture(scope="module")
def model() -> hm.NeuralEBM:
    generator = torch.Generator().manual_seed(11)
    net = hm.MLP(1, hidden=(16, 16), generator=generator).double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.3)
    return hm.NeuralEBM(net, base_std=1.0)


def total_variation(x: torch.Tensor, grid: torch.Tensor, model: hm.NeuralEBM, n_bins: int = 20) -> tuple[float, float]:
    """Return the distance of a histogram to the law, and what exact draws would give on average."""
    with torch.no_grad():
        law = (-model.free_energy(grid)).softmax(0)
    cumulative = law.cumsum(0)
    edges = grid[torch.searchsorted(cumulative, torch.arange(1, n_bins, dtype=torch.float64) / n_bins), 0]
    exact = torch.bincount(torch.bucketize(grid[:, 0], edges), law, n_bins)
    share = torch.bincount(torch.bucketize(x[:, 0].contiguous(), edges), minlength=n_bins) / len(x)
    floor = (exact * (1 - exact) / len(x)).sqrt().sum() * math.sqrt(2 / math.pi) / 2
    return ((share - exact).abs().sum() / 2).item(), floor.item()


@pytest.mark.parametrize("n_steps", [1, 4, 16])
def test_mala_does_not_drift(model: hm.NeuralEBM, n_steps: int, generator: torch.Generator) -> None:
    grid, _ = line(-8, 8)
    sampler = hm.MALA(step_size=0.8)
    state = sampler.init(model, draw_from(model, grid, 20_000, generator=generator))
    for _ in range(n_steps):
        state, info = sampler.step(model, state, generator=generator)
    assert 0.3 < info["accepted"].double().mean() < 0.98  # it both accepts and rejects
    distance, floor = total_variation(state["x"], grid, model)
    assert distance < 4 * floor


def test_a_langevin_step_that_large_drifts(model: hm.NeuralEBM, generator: torch.Generator) -> None:
    grid, _ = line(-8, 8)
    sampler = hm.Langevin(step_size=0.8)
    state = sampler.init(model, draw_from(model, grid, 20_000, generator=generator))
    for _ in range(16):
        state, _ = sampler.step(model, state, generator=generator)
    distance, floor = total_variation(state["x"], grid, model)
    assert distance > 4 * floor


@pytest.mark.parametrize(("sampler", "variance"), [(hm.Langevin(0.5), 1 / (1 - 0.25)), (hm.MALA(0.5), 1.0)])
def test_the_bias_of_langevin_is_the_known_one(
    sampler: hm.samplers.Sampler, variance: float, generator: torch.Generator
) -> None:
    """On `x²/2s²` Langevin steps of size α settle at the variance `s²/(1 - α/2s²)`, here 4/3; MALA at s² = 1."""
    model = hm.NeuralEBM(Quadratic(1.0, 1))
    n = 40_000
    state = sampler.init(model, torch.randn(n, 1, generator=generator, dtype=torch.float64))
    for _ in range(30):
        state, _ = sampler.step(model, state, generator=generator)
    assert abs(state["x"].var().item() - variance) < 4 * variance * math.sqrt(2 / n)
