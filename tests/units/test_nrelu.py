"""Noisy rectified linear units against the infinite sum, eq. 2 of the paper and the rule of Nair and Hinton."""

from __future__ import annotations

import math

import pytest
import torch

from harmonium.types import softplus
from harmonium.units import NReLU

FIELD = torch.linspace(-30, 60, 9001, dtype=torch.float64)[:, None]


def copies(field: torch.Tensor) -> torch.Tensor:
    """The fields on the first 200 of the infinitely many copies."""
    return field - torch.arange(200, dtype=torch.float64) - 0.5


def test_the_reflection_equals_the_long_sum() -> None:
    units = NReLU(1)
    shifted = copies(FIELD)
    assert torch.allclose(units.log_partition(FIELD)[:, 0], softplus(shifted).sum(-1), rtol=1e-13, atol=1e-12)
    assert torch.allclose(units.mean(FIELD)[:, 0], shifted.sigmoid().sum(-1), rtol=1e-13, atol=1e-12)
    variance = (shifted.sigmoid() * (-shifted).sigmoid()).sum(-1)
    assert torch.allclose(units.variance(FIELD)[:, 0], variance, rtol=1e-12, atol=1e-12)


def test_softplus_is_close_to_the_mean() -> None:
    """Eq. 2: Σ_n σ(x - n + ½) ≈ log(1 + e^x), to 0.011; ≈ max(0, x), to log 2."""
    mean = NReLU(1).mean(FIELD)
    assert 0.0100 < (mean - softplus(FIELD)).abs().max() < 0.0107
    assert 0.68 < (mean - FIELD.clamp_min(0)).abs().max() < math.log(2)


def test_rule_of_nair_and_hinton() -> None:
    """`max(0, θ + √σ(θ) ε)`: its noise has the unit's variance to 0.0042; above θ = 5 mean and variance agree."""
    units = NReLU(1)
    assert (units.variance(FIELD) - FIELD.sigmoid()).abs().max() < 0.0042
    spread = FIELD.sigmoid().sqrt()
    z = FIELD / spread
    density = (-z.square() / 2).exp() / math.sqrt(2 * math.pi)
    mean = FIELD * torch.special.ndtr(z) + spread * density
    second = (FIELD.square() + spread.square()) * torch.special.ndtr(z) + FIELD * spread * density
    high = FIELD > 5
    assert (mean - units.mean(FIELD))[high].abs().max() < 0.0065
    assert (second - mean.square() - units.variance(FIELD))[high].abs().max() < 0.0005
    assert (mean - units.mean(FIELD)).abs().max() > 0.3  # below zero the rule is off: the exact draw is not


def test_base_measure_by_brute_force() -> None:
    """`μ(x)`: all ways to have x of the first 16 copies active, which leaves out less than 1e-5 of the rest."""
    weights = [0.0] * 5
    for active in range(2**16):
        chosen = [n for n in range(16) if active >> n & 1]
        if len(chosen) < 5:
            weights[len(chosen)] += math.exp(-sum(n + 0.5 for n in chosen))
    found = NReLU(1).log_base(torch.arange(5.0).double()).exp()
    assert found.tolist() == pytest.approx(weights, rel=1e-5)
    assert NReLU(1).log_base(torch.tensor([-1.0])).item() == -math.inf


def test_large_fields_keep_their_digits() -> None:
    units = NReLU(1)
    field = torch.tensor([[1000.25]])
    assert units.mean(field).item() == pytest.approx(1000.25, abs=1e-3)
    assert abs(units.sample(field, generator=torch.Generator()).item() - 1000.25) < 10
    assert units.mode(field).item() == 1000.0


def test_a_field_that_is_no_number_stays_none() -> None:
    """So that whoever looks at the chains says so; it used to be an index out of bounds."""
    drawn = NReLU(2).sample(torch.tensor([[math.nan, 1.0]]))
    assert drawn.isnan().tolist() == [[True, False]]
    assert NReLU(1).log_base(torch.tensor([math.nan, -1.0, math.inf])).tolist()[1:] == [-math.inf, -math.inf]
