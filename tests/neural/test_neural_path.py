"""log Z of neural energies against quadrature."""

from __future__ import annotations

import math

import pytest
import torch

import harmonium as hm
from harmonium.partition.neural_path import NeuralPath
from tests.neural.quadrature import Quadratic, log_z_on, plane


@pytest.fixture(scope="module")
def net() -> hm.MLP:
    generator = torch.Generator().manual_seed(3)
    net = hm.MLP(2, hidden=(32, 32), generator=generator)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(1.5).add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return net


def test_from_a_uniform_law_the_integral_over_the_box(net: hm.MLP, generator: torch.Generator) -> None:
    model = hm.NeuralEBM(net, box=(-2.0, 1.5))
    exact = log_z_on(model, *midpoints(-2.0, 1.5))
    found = hm.log_z(model, n_chains=256, n_betas=60, n_steps=50, generator=generator)
    assert found.trusted and found.lower <= exact <= found.upper
    assert abs(found.value - exact) < 4 * found.error + 0.002
    # The same answer does not hold for another box: the reference decides what Z is.
    law = hm.laws.UniformLaw((2,), -1.0, 1.0)
    other = hm.ais(model, reference=law, n_chains=256, n_betas=60, generator=generator)
    assert abs(other.value - exact) > 10 * other.error
    assert abs(other.value - log_z_on(model, *midpoints(-1.0, 1.0))) < 4 * other.error + 0.002


def midpoints(low: float, high: float, n: int = 400) -> tuple[torch.Tensor, float]:
    """Return the midpoints of n × n cells: a box has hard edges."""
    half = (high - low) / (2 * n)
    return plane(low + half, high - half, n)


@pytest.mark.parametrize("fitted", [False, True])
def test_from_a_gaussian_law(net: hm.MLP, fitted: bool, generator: torch.Generator) -> None:
    model = hm.NeuralEBM(net, base_std=1.2)
    exact = log_z_on(model, *plane(-9, 9, 601))
    law = hm.laws.GaussianLaw(torch.tensor([0.5, -0.3]), torch.tensor([1.5, 0.9])) if fitted else None
    up = hm.ais(model, reference=law, n_chains=256, n_betas=60, generator=generator)
    down = hm.partition.reverse_ais(model, reference=law, n_chains=256, n_betas=60, n_steps=50, generator=generator)
    assert abs(up.value - exact) < 4 * up.error + 0.002 and up.error < 0.1
    assert abs(down.value - exact) < 4 * down.error + 0.002
    x = torch.zeros(3, 2)
    z = hm.log_z(model, reference=law, n_chains=128, n_betas=60, n_steps=20, generator=generator)
    log_p = hm.log_likelihood(model, x, log_z=z)
    torch.testing.assert_close(log_p.value, (-model.free_energy(x) - z.value).double().detach(), atol=1e-5, rtol=0)


def test_the_mean_of_the_weights_is_right_with_few_temperatures(generator: torch.Generator) -> None:
    """Z is estimated without bias however crude the ladder: the mean of Z over many chains is Z."""
    model = hm.NeuralEBM(Quadratic(0.5), base_std=1.0)
    variance = 1 / (1 / 0.25 + 1)
    exact = math.log(2 * math.pi * variance)
    found = hm.ais(model, n_chains=20_000, betas=[0.0, 0.3, 0.7, 1.0], generator=generator)
    assert abs(found.value - exact) < 4 * found.error
    assert found.error < 0.02


def test_the_transitions_leave_each_law_as_it_is(generator: torch.Generator) -> None:
    model = hm.NeuralEBM(Quadratic(0.5, 1))
    path = NeuralPath(model, hm.laws.GaussianLaw(torch.zeros(1), 1.0), n_steps=3)
    path.start(2, generator=generator)
    beta = 0.4
    variance = 1 / ((1 - beta) + beta / 0.25)
    n = 40_000
    point = path.point({"x": torch.randn(n, 1, generator=generator, dtype=torch.float64) * math.sqrt(variance)})
    moved = path.advance(point, beta, generator=generator)
    assert (moved.state["x"] != point.state["x"]).double().mean() > 0.8
    assert abs(moved.state["x"].var().item() - variance) < 4 * variance * math.sqrt(2 / n)
    wrong = path.advance(point, 1.0, generator=generator)
    assert abs(wrong.state["x"].var().item() - variance) > 4 * variance * math.sqrt(2 / n)


def test_an_estimate_that_cannot_be_trusted_says_so(generator: torch.Generator) -> None:
    model = hm.NeuralEBM(Quadratic(0.01, 20))
    with pytest.warns(UserWarning, match="log Z is not trustworthy"):
        found = hm.log_z(model, n_chains=32, n_betas=5, n_steps=5, generator=generator)
    assert not found.trusted and "nats apart" in found.note


def test_references_of_the_wrong_kind(generator: torch.Generator) -> None:
    with pytest.raises(TypeError, match="anneals from a law"):
        hm.ais(hm.NeuralEBM(Quadratic()), reference=torch.zeros(2))
    with pytest.raises(TypeError, match="anneals from a field"):
        hm.ais(hm.RBM(hm.Bernoulli(30), hm.Bernoulli(30)), reference=hm.laws.UniformLaw((30,)))
    with pytest.raises(TypeError, match="where to anneal from"):
        hm.ais(torch.nn.Identity(), n_betas=10)  # type: ignore[arg-type]


def test_laws_are_normalized_and_drawn(generator: torch.Generator) -> None:
    x, cell = plane(-8, 8, 401, torch.float64)
    law = hm.laws.GaussianLaw(
        torch.tensor([0.5, -1.0], dtype=torch.float64), torch.tensor([1.0, 0.6], dtype=torch.float64)
    )
    assert log_z_on(law, x, cell) == pytest.approx(0.0, abs=1e-9)
    draws = law.initial(20_000, generator=generator)
    fitted = hm.laws.GaussianLaw.fitted(draws)
    torch.testing.assert_close(fitted.mean, law.mean, atol=4 / 20_000**0.5, rtol=0)
    torch.testing.assert_close(fitted.scale, law.scale, atol=3 / 20_000**0.5, rtol=0)
    point = draws[:5].requires_grad_()
    torch.testing.assert_close(torch.autograd.grad(law.free_energy(point).sum(), point)[0], law.slope(point))
    box = hm.laws.UniformLaw((2,), -1.0, 3.0)
    assert box.free_energy(torch.tensor([[0.0, 0.0], [0.0, 3.5]])).tolist() == [pytest.approx(math.log(16)), math.inf]
    assert (box.free_energy(box.initial(1000, generator=generator)).isfinite()).all()
    with pytest.raises(ValueError, match="`std` must be positive"):
        hm.laws.GaussianLaw(torch.zeros(2), 0.0)
    with pytest.raises(ValueError, match="`low` must be below"):
        hm.laws.UniformLaw((2,), 1.0, 1.0)
