"""Densities in the plane and exact lattices, against their laws. Statistical checks: 5σ, false alarms below 6e-7."""

from __future__ import annotations

import math

import pytest
import torch

from harmonium import native
from harmonium.data import (
    bars_and_stripes,
    checkerboard,
    circles,
    ising,
    ising_law,
    load,
    mixture,
    mixture_log_density,
    moons,
    pinwheel,
)

DRAWS = [moons, circles, mixture, pinwheel, checkerboard]


@pytest.mark.parametrize("draw", DRAWS, ids=lambda draw: draw.__name__)
def test_shape_and_repeatability(draw) -> None:
    x = draw(100, generator=torch.Generator().manual_seed(3))
    assert x.shape == (100, 2) and x.dtype == torch.float32 and x.isfinite().all()
    assert torch.equal(x, draw(100, generator=torch.Generator().manual_seed(3)))
    assert not torch.equal(x, draw(100, generator=torch.Generator().manual_seed(4)))
    with pytest.raises(ValueError, match="`n` must be positive"):
        draw(0)


def test_moons_without_noise_lie_on_their_half_circles(generator: torch.Generator) -> None:
    x = moons(500, noise=0.0, generator=generator)
    upper = (x.norm(dim=1) - 1).abs() + (-x[:, 1]).clamp_min(0)
    lower = ((x - torch.tensor([1.0, 0.5])).norm(dim=1) - 1).abs() + (x[:, 1] - 0.5).clamp_min(0)
    assert float(torch.minimum(upper, lower).max()) < 1e-5
    assert float(upper.max()) > 0.1 and float(lower.max()) > 0.1


def test_circles_without_noise(generator: torch.Generator) -> None:
    radius = circles(500, noise=0.0, factor=0.3, generator=generator).norm(dim=1)
    assert float(torch.minimum((radius - 1).abs(), (radius - 0.3).abs()).max()) < 1e-5


def test_checkerboard_is_on_the_dark_squares(generator: torch.Generator) -> None:
    x = checkerboard(4000, generator=generator)
    cells = ((x + 4) / 2).floor().long()
    assert int(cells.min()) == 0 and int(cells.max()) == 3
    assert bool((cells.sum(1) % 2 == 0).all())
    counts = torch.bincount(4 * cells[:, 1] + cells[:, 0], minlength=16)
    used = counts[counts > 0].double()
    assert len(used) == 8
    assert float((used - 500).abs().max()) < 5 * math.sqrt(4000 * (1 / 8) * (7 / 8)) + 1


def test_mixture_density_integrates_to_one_and_is_the_law_of_the_samples(generator: torch.Generator) -> None:
    axis = torch.linspace(-4, 4, 401, dtype=torch.float64)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1)
    density = mixture_log_density(grid).exp()
    cell = float(axis[1] - axis[0]) ** 2
    assert float(density.sum()) * cell == pytest.approx(1, abs=1e-6)
    log_density = mixture_log_density(mixture(20_000, generator=generator).double())
    negative_entropy = float((density * mixture_log_density(grid)).sum()) * cell
    error = float(log_density.std()) / math.sqrt(len(log_density))
    assert abs(float(log_density.mean()) - negative_entropy) < 5 * error
    wrong = mixture_log_density(mixture(20_000, std=0.25, generator=generator).double())
    assert abs(float(wrong.mean()) - negative_entropy) > 5 * error


def test_bars_and_stripes_law() -> None:
    patterns, probabilities = bars_and_stripes(4)
    assert len(patterns) == 30 and float(probabilities.sum()) == 1
    for pattern, probability in zip(patterns, probabilities, strict=True):
        rows = bool((pattern == pattern[:, :1]).all())
        columns = bool((pattern == pattern[:1, :]).all())
        assert rows or columns
        assert float(probability) == (2 / 32 if rows and columns else 1 / 32)
    data = load("bars-and-stripes")
    distinct, counts = data.train.view(32, 16).unique(dim=0, return_counts=True)
    assert len(distinct) == 30 and sorted(counts.tolist()) == [1] * 28 + [2] * 2


DENSITY_OF_STATES = {32: 2, 24: 32, 20: 64, 16: 424, 12: 1728, 8: 6688, 4: 13568, 0: 20524}
"""The number of states of the 4x4 torus with Σ s_i s_j = E; the same for -E (Beale 1996)."""


@pytest.mark.parametrize("beta", [0.0, 0.2, 0.44])
def test_ising_law_against_the_known_density_of_states(beta: float) -> None:
    states, probabilities = ising_law(4, beta)
    spins = states.long() * 2 - 1
    bonds = (spins * spins.roll(-1, 1)).sum((1, 2)) + (spins * spins.roll(-1, 2)).sum((1, 2))
    known = {**DENSITY_OF_STATES, **{-energy: n for energy, n in DENSITY_OF_STATES.items()}}
    assert {energy: int((bonds == energy).sum()) for energy in set(bonds.tolist())} == known
    z = sum(n * math.exp(beta * energy) for energy, n in known.items())
    for energy in known:
        assert float(probabilities[bonds == energy][0]) == pytest.approx(math.exp(beta * energy) / z, rel=1e-10)


def test_ising_samples_have_the_exact_energy(generator: torch.Generator) -> None:
    def bonds(x: torch.Tensor) -> torch.Tensor:
        spins = x.double() * 2 - 1
        return (spins * spins.roll(1, 1)).sum((1, 2)) + (spins * spins.roll(1, 2)).sum((1, 2))

    x = ising(20_000, beta=0.3, generator=generator)
    states, probabilities = ising_law(4, 0.3)
    expected = float((probabilities * bonds(states)).sum())
    error = float(bonds(x).std()) / math.sqrt(len(x))
    assert abs(float(bonds(x).mean()) - expected) < 5 * error
    assert abs(float(bonds(ising(20_000, beta=0.32, generator=generator)).mean()) - expected) > 5 * error


def test_too_large_a_lattice_is_refused() -> None:
    with pytest.raises(ValueError, match="must be 2, 3 or 4"):
        ising(10, size=5)


@pytest.mark.parametrize("draw", DRAWS, ids=lambda draw: draw.__name__)
def test_a_seed_gives_the_same_data_without_the_compiled_loops(draw, monkeypatch: pytest.MonkeyPatch) -> None:
    first = draw(5000, generator=torch.Generator().manual_seed(1))
    monkeypatch.setattr(native, "LIBRARY", None)
    assert torch.equal(first, draw(5000, generator=torch.Generator().manual_seed(1)))
    assert not torch.equal(first, draw(5000, generator=torch.Generator().manual_seed(2)))
