"""Multinary units: how far the smooth unit of the paper is from the exact one, and what they reduce to."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from harmonium.units import Activation, Bernoulli, Binomial, Multinary
from harmonium.units.activation import ACTIVATIONS

GRID = torch.linspace(-600, 600, 60001, dtype=torch.float64)[:, None]

DISTANCES = {
    # levels: {k: the largest |Σ_n σ(θ - o_n) - N g(kθ)| / N}
    1: {0.25: 0.275, 0.5: 0.150, 1.0: 0.0, 2.0: 0.150, 4.0: 0.275},
    2: {0.25: 0.114, 0.5: 0.0493, 1.0: 0.0528, 2.0: 0.164},
    4: {0.1: 0.0842, 0.25: 0.0521, 0.5: 0.0316, 1.0: 0.0754, 2.0: 0.172},
    16: {0.02: 0.0280, 0.1: 0.0204, 0.25: 0.0122, 0.5: 0.0317, 1.0: 0.0862},
    255: {4 / 255: 0.00179, 0.02: 0.00175, 0.1: 0.00156, 0.25: 0.00925, 1.0: 0.0872},
}
"""How far apart the exact and smooth units are. At the default k = min(1, 4/N): 0, 5, 8, 1 and 0.2 % of the range."""


def distance(levels: int, k: float | None, activation: str = "sigmoid") -> float:
    exact = Multinary(1, levels=levels, k=k, activation=activation, exact=True).double()
    smooth = Multinary(1, levels=levels, k=k, activation=activation)
    return (exact.mean(GRID) - smooth.mean(GRID)).abs().max().item() / levels


@pytest.mark.parametrize(("levels", "k"), [(levels, k) for levels, row in DISTANCES.items() for k in row])
def test_distance_of_the_smooth_unit(levels: int, k: float) -> None:
    known = DISTANCES[levels][k]
    assert known * 0.97 - 1e-12 <= distance(levels, k) <= known * 1.01 + 1e-12


@pytest.mark.parametrize(("levels", "bound"), [(1, 0.0), (2, 0.053), (4, 0.076), (16, 0.0123), (255, 0.0018)])
def test_distance_at_the_default_k(levels: int, bound: float) -> None:
    assert distance(levels, None) <= bound


@pytest.mark.parametrize(
    ("activation", "k", "bound"), [("relu", 1 / 255, 0.0027), ("tanh", 2 / 255, 0.0018), ("softplus", 1 / 255, 0.0017)]
)
def test_distance_of_other_activations(activation: str, k: float, bound: float) -> None:
    assert 0 < distance(255, k, activation) <= bound


def test_default_k() -> None:
    assert Multinary(1, levels=255).steepness == 4 / 255
    assert Multinary(1, levels=2).steepness == 1.0
    assert Multinary(1, levels=255, k=0.5).steepness == 0.5


@pytest.mark.parametrize("exact", [True, False])
def test_one_level_is_bernoulli(exact: bool) -> None:
    field = torch.linspace(-30, 30, 601, dtype=torch.float64)[:, None]
    multinary, binary = Multinary(1, levels=1, k=1.0, exact=exact).double(), Bernoulli(1)
    for method in ("log_partition", "mean", "variance"):
        assert torch.allclose(getattr(multinary, method)(field), getattr(binary, method)(field), rtol=1e-12, atol=1e-12)


def test_smooth_with_k_one_is_binomial() -> None:
    field = torch.linspace(-30, 30, 601, dtype=torch.float64)[:, None]
    smooth, binomial = Multinary(1, levels=7, k=1.0), Binomial(1, levels=7)
    for method in ("log_partition", "mean", "variance"):
        assert torch.allclose(getattr(smooth, method)(field), getattr(binomial, method)(field), rtol=1e-12, atol=1e-12)


def test_offsets_halve_the_levels() -> None:
    """`o_n = f⁻¹(n - ½)` (section 3.2 of the paper); relu with spacing 1 has those of noisy rectified linear units."""
    unit = Multinary(1, levels=5, k=0.7, exact=True)
    smooth = Multinary(1, levels=5, k=0.7)
    assert torch.allclose(smooth.mean(unit.offsets[:, None])[:, 0], torch.arange(5.0).double() + 0.5)
    relu = Multinary(1, levels=5, k=1 / 5, activation="relu", exact=True)
    assert torch.allclose(relu.offsets, torch.arange(5.0).double() + 0.5)


def test_base_measure_counts_the_copies() -> None:
    """`μ(x)` is the elementary symmetric polynomial: brute force over all 2⁴ sets of active copies."""
    unit = Multinary(1, levels=4, exact=True).double()
    weights = [0.0] * 5
    for copies in range(16):
        active = [n for n in range(4) if copies >> n & 1]
        weights[len(active)] += math.exp(-sum(unit.offsets[n].item() for n in active))
    found = unit.log_base(torch.arange(5.0).double()).exp()
    assert found.tolist() == pytest.approx(weights, rel=1e-12)


@pytest.mark.parametrize("field", [0.0, 40.0, -100.0, 300.0])
def test_smooth_draws_are_normal_inside_the_range(field: float, generator: torch.Generator) -> None:
    """The clipped normal law `N(f, f')`: its distribution function, by DKW at a false-alarm rate of 1e-6."""
    unit, n = Multinary(1, levels=255), 20000
    theta = torch.full((n, 1), field, dtype=torch.float64)
    x = unit.sample(theta, generator=generator)[:, 0].sort().values
    mean, spread = unit.mean(theta)[0, 0], unit.variance(theta)[0, 0].sqrt()
    exact = torch.special.ndtr((x - mean) / spread)
    steps = torch.arange(1, n + 1, dtype=torch.float64) / n
    inside = (x > 0) & (x < 255)
    assert x.min() >= 0
    assert x.max() <= 255
    assert (exact - steps)[inside].abs().max().item() < math.sqrt(math.log(2e6) / (2 * n))
    wrong = torch.special.ndtr((x - mean) / (1.1 * spread))  # negative control
    assert (wrong - steps)[inside].abs().max().item() > math.sqrt(math.log(2e6) / (2 * n))


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_variance_is_never_negative(name: str, dtype: torch.dtype) -> None:
    """Rounding leaves the slope of a flat curve just below zero; its square root would be NaN."""
    unit = Multinary(1, levels=255, activation=name)
    field = torch.linspace(-1000, 1000, 200001, dtype=dtype)[:, None]
    assert unit.variance(field).min() >= 0
    assert unit.sample(field, generator=torch.Generator()).isfinite().all()


# --- activations ------------------------------------------------------------------------------------------------------
def closed_form_step(x: Tensor) -> Tensor:
    """The integral of `½ + atan(x)/π` from zero."""
    return x / 2 + (x * x.atan() - (1 + x.square()).log() / 2) / math.pi


def test_integral_by_quadrature() -> None:
    step = Activation("step", lambda x: x.atan() / math.pi + 0.5)
    x = torch.linspace(-50, 50, 1001, dtype=torch.float64)
    assert torch.allclose(step.primitive(x), closed_form_step(x), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_quadrature_equals_the_closed_forms(name: str) -> None:
    known = ACTIVATIONS[name]
    blind = Activation(name, known.value)
    x = torch.linspace(-40, 40, 801, dtype=torch.float64)
    zero = known.primitive(torch.zeros(1, dtype=torch.float64))
    assert torch.allclose(blind.primitive(x), known.primitive(x) - zero, rtol=1e-11, atol=1e-11)
    wrong = Activation(name, lambda x: known.value(1.001 * x))  # negative control
    assert not torch.allclose(wrong.primitive(x), known.primitive(x) - zero, atol=1e-6)


def test_relu_integral() -> None:
    x = torch.tensor([-1.0, 0.0, 0.5, 1.0, 3.0], dtype=torch.float64)
    assert ACTIVATIONS["relu"].primitive(x).tolist() == [0.0, 0.0, 0.125, 0.5, 2.5]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_inverse_by_bisection_equals_the_closed_forms(name: str) -> None:
    known = ACTIVATIONS[name]
    value = torch.linspace(0.02, 0.98, 49, dtype=torch.float64)
    blind = Activation(name, known.value)
    assert torch.allclose(blind.argument(value), known.argument(value), atol=1e-9)
    assert torch.allclose(known.value(known.argument(value)), value, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("exact", [True, False])
def test_a_curve_of_ones_own(exact: bool) -> None:
    step = Activation("step", lambda x: x.atan() / math.pi + 0.5)
    unit = Multinary(2, levels=4, k=1.0, activation=step, exact=exact).double()
    field = torch.linspace(-3, 3, 20, dtype=torch.float64).reshape(10, 2)
    assert repr(unit).startswith("Multinary(2, levels=4, k=1.0, activation=step")
    assert torch.allclose(unit.mean(unit.link(unit.mean(field))), unit.mean(field), atol=1e-8)
    point = field.clone().requires_grad_()
    (slope,) = torch.autograd.grad(unit.log_partition(point).sum(), point)
    assert torch.allclose(slope, unit.mean(field), atol=1e-8)


@pytest.mark.parametrize(("levels", "k"), [(1, 1.0), (4, None), (7, 0.3), (255, None), (1, 3.0)])
def test_smooth_draws_have_the_mean_and_the_variance(levels: int, k: float | None, generator: torch.Generator) -> None:
    """Both at every field, the ends included; where `f' > f (N - f)` no law on [0, N] has both, and the mean stays.

    Bernstein's inequality for each of 2 × 9 numbers of 5 cases: a false alarm with probability below 1e-6 in all.
    """
    unit, n = Multinary(1, levels=levels, k=k).double(), 40_000
    field = torch.tensor([-9.0, -4.0, -2.0, -0.5, 0.0, 0.3, 2.0, 5.0, 9.0], dtype=torch.float64) / unit.steepness
    x = unit.sample(field[:, None].expand(n, 9, 1), generator=generator)[..., 0]
    mean = unit.mean(field[:, None])[:, 0]
    variance = torch.minimum(unit.variance(field[:, None])[:, 0], mean * (levels - mean))
    t = math.log(2 * 90 / 1e-6)
    assert bool(((x.mean(0) - mean).abs() <= (2 * variance * t / n).sqrt() + levels * t / (3 * n)).all())
    squares = (x - mean).square()
    fourth = squares.square().mean(0) * 2  # at most twice what was seen, of a bounded variable seen so often
    off = (squares.mean(0) - variance).abs()
    assert bool((off <= (2 * fourth * t / n).sqrt() + levels**2 * t / (3 * n) + 1e-9).all())


def test_smooth_draws_of_one_level_are_coins(generator: torch.Generator) -> None:
    """With N = 1 and k = 1 the smooth unit is the Bernoulli unit in its draws, too."""
    field = torch.linspace(-5, 5, 50, dtype=torch.float64)[:, None]
    x = Multinary(1, levels=1, k=1.0).sample(field, generator=generator)
    assert bool((torch.minimum(x.abs(), (x - 1).abs()) < 1e-12).all()) and 0 < x.mean() < 1
