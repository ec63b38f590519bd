"""The two restricted Boltzmann machines of the seeds, evaluated in loops straight from their formulas, to 1e-10."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from harmonium.models import RBM
from harmonium.testing import ExactLaw
from harmonium.units import Bernoulli, Gaussian

TOLERANCE = 1e-10


def close(value: float) -> object:
    return pytest.approx(value, rel=TOLERANCE, abs=TOLERANCE)


def sigm(a: float) -> float:
    return 1 / (1 + math.exp(-a))


Parameters = tuple[list[list[float]], list[float], list[float]]


def draw_parameters(n_visible: int, n_hidden: int, generator: torch.Generator) -> Parameters:
    W = torch.randn(n_visible, n_hidden, generator=generator, dtype=torch.float64)
    b = torch.randn(n_visible, generator=generator, dtype=torch.float64)
    c = torch.randn(n_hidden, generator=generator, dtype=torch.float64)
    return W.tolist(), b.tolist(), c.tolist()


def build(visible: Bernoulli | Gaussian, parameters: Parameters) -> RBM:
    weight, visible_bias, hidden_bias = (torch.tensor(values, dtype=torch.float64) for values in parameters)
    rbm = RBM(visible, Bernoulli(len(hidden_bias))).double()
    with torch.no_grad():
        rbm.weight.copy_(weight)
        rbm.visible_bias.copy_(visible_bias)
        rbm.hidden_bias.copy_(hidden_bias)
        if isinstance(visible, Gaussian):
            visible.log_sigma.copy_(torch.tensor(SIGMA, dtype=torch.float64).log())
    return rbm


# --- the binary RBM: eqs. 6.33-6.39 of Tomczak's chapter ------------------------------------------------------------
D, M = 3, 4


def binary_energy(
    x: tuple[int, ...], z: tuple[int, ...], W: list[list[float]], b: list[float], c: list[float]
) -> float:
    """Eq. 6.33."""
    total = 0.0
    for d in range(D):
        for m in range(M):
            total -= x[d] * W[d][m] * z[m]
    for d in range(D):
        total -= b[d] * x[d]
    for m in range(M):
        total -= c[m] * z[m]
    return total


def test_binary_rbm(generator: torch.Generator) -> None:
    W, b, c = draw_parameters(D, M, generator)
    rbm = build(Bernoulli(D), (W, b, c))
    xs = list(itertools.product((0, 1), repeat=D))
    zs = list(itertools.product((0, 1), repeat=M))
    Z = sum(math.exp(-binary_energy(x, z, W, b, c)) for x in xs for z in zs)  # eq. 6.35
    law = ExactLaw(rbm)
    assert law.log_z == close(math.log(Z))
    for x in xs:
        v = torch.tensor(x, dtype=torch.float64)
        joint = sum(math.exp(-binary_energy(x, z, W, b, c)) for z in zs)
        F = -sum(b[d] * x[d] for d in range(D))  # eq. 6.37
        for j in range(M):
            F -= math.log(1 + math.exp(c[j] + sum(W[d][j] * x[d] for d in range(D))))
        assert rbm.free_energy(v).item() == close(F)
        assert close(-math.log(joint)) == F
        assert math.exp(-rbm.free_energy(v).item() - law.log_z) == close(joint / Z)  # eqs. 6.34 and 6.36
        for m in range(M):  # eq. 6.38, and its definition by summing out
            one = sum(math.exp(-binary_energy(x, z, W, b, c)) for z in zs if z[m]) / joint
            assert rbm.hidden_mean(v)[m].item() == close(one)
            assert one == close(sigm(c[m] + sum(W[d][m] * x[d] for d in range(D))))
    for z in zs:
        h = torch.tensor(z, dtype=torch.float64)
        joint = sum(math.exp(-binary_energy(x, z, W, b, c)) for x in xs)
        assert rbm.energy({"hidden": h}).item() == close(-math.log(joint))
        for d in range(D):  # eq. 6.39
            one = sum(math.exp(-binary_energy(x, z, W, b, c)) for x in xs if x[d]) / joint
            assert rbm.visible_mean(h)[d].item() == close(one)
            assert one == close(sigm(b[d] + sum(W[d][m] * z[m] for m in range(M))))
        for x in xs:
            state = {"visible": torch.tensor(x, dtype=torch.float64), "hidden": h}
            assert rbm.energy(state).item() == close(binary_energy(x, z, W, b, c))


# --- the Gaussian-Bernoulli RBM of the lab exercise, sections 2 and 3 -------------------------------------------------
SIGMA = [0.7, 1.4]


def lab_energy(x: list[float], z: tuple[int, ...], W: list[list[float]], b: list[float], c: list[float]) -> float:
    """e(x, z) of section 2."""
    total = 0.0
    for i in range(2):
        total += (x[i] - b[i]) ** 2 / (2 * SIGMA[i] ** 2)
    for i in range(2):
        for j in range(M):
            total -= x[i] / SIGMA[i] ** 2 * W[i][j] * z[j]
    for j in range(M):
        total -= c[j] * z[j]
    return total


def lab_free_energy(x: list[float], W: list[list[float]], b: list[float], c: list[float]) -> float:
    """F(x) of section 3."""
    total = sum((x[i] - b[i]) ** 2 / (2 * SIGMA[i] ** 2) for i in range(2))
    for j in range(M):
        total -= math.log(1 + math.exp(c[j] + sum(x[i] / SIGMA[i] ** 2 * W[i][j] for i in range(2))))
    return total


def test_lab_rbm(generator: torch.Generator) -> None:
    W, b, c = draw_parameters(2, M, generator)
    rbm = build(Gaussian(2), (W, b, c))
    constant = sum(b[i] ** 2 / (2 * SIGMA[i] ** 2) for i in range(2))  # left out of our energy: it cancels
    zs = list(itertools.product((0, 1), repeat=M))
    xs = torch.randn(5, 2, generator=generator, dtype=torch.float64).tolist()
    # Z of the lab: for each z a Gaussian integral, ∫ exp(-(x-b)²/2σ² + ax/σ²) dx = σ√2π exp((a² + 2ab)/2σ²).
    Z = 0.0
    for z in zs:
        term = math.exp(sum(c[j] * z[j] for j in range(M)))
        for i in range(2):
            a = sum(W[i][j] * z[j] for j in range(M))
            term *= SIGMA[i] * math.sqrt(2 * math.pi) * math.exp((a**2 + 2 * a * b[i]) / (2 * SIGMA[i] ** 2))
        Z += term
    law = ExactLaw(rbm)
    assert law.log_z == close(math.log(Z) + constant)
    for x in xs:
        v = torch.tensor(x, dtype=torch.float64)
        joint = sum(math.exp(-lab_energy(x, z, W, b, c)) for z in zs)
        assert rbm.free_energy(v).item() == close(lab_free_energy(x, W, b, c) - constant)
        assert lab_free_energy(x, W, b, c) == close(-math.log(joint))
        assert math.exp(-rbm.free_energy(v).item() - law.log_z) == close(joint / Z)
        for j in range(M):  # z | x ~ B(sigmoid(c + Wᵀ x/σ²))
            one = sum(math.exp(-lab_energy(x, z, W, b, c)) for z in zs if z[j]) / joint
            assert rbm.hidden_mean(v)[j].item() == close(one)
            assert one == close(sigm(c[j] + sum(x[i] / SIGMA[i] ** 2 * W[i][j] for i in range(2))))
        for z in zs:
            h = torch.tensor(z, dtype=torch.float64)
            assert rbm.energy({"visible": v, "hidden": h}).item() == close(lab_energy(x, z, W, b, c) - constant)
            log_density = -rbm.energy({"visible": v, "hidden": h}) + rbm.energy({"hidden": h})
            exact = 0.0
            for i in range(2):  # x | z ~ N(b + Wz, σ²)
                mean = b[i] + sum(W[i][j] * z[j] for j in range(M))
                assert rbm.visible_mean(h)[i].item() == close(mean)
                exact -= ((x[i] - mean) / SIGMA[i]) ** 2 / 2 + math.log(SIGMA[i] * math.sqrt(2 * math.pi))
            assert log_density.item() == close(exact)
            variance = rbm.visible.variance(rbm.field("visible", {"hidden": h}))
            assert [variance[i].item() for i in range(2)] == [close(SIGMA[i] ** 2) for i in range(2)]


def published_machine() -> RBM:
    """The 2-D Gaussian-Bernoulli RBM whose log Z is published."""
    W = [[-2.13559806, -0.71220501, 0.64841691, 2.17880554], [0.75840129, -2.13979672, 2.09910978, -0.64721076]]
    gaussian = Gaussian(2).double()
    rbm = RBM(gaussian, Bernoulli(4)).double()
    with torch.no_grad():
        rbm.weight.copy_(torch.tensor(W, dtype=torch.float64))
        rbm.hidden_bias.copy_(torch.tensor([-7.87792514, -7.60603139, -7.73935758, -7.722771], dtype=torch.float64))
        gaussian.log_sigma.copy_(torch.tensor([0.74241256, 0.73101419], dtype=torch.float64).log())
    return rbm


def test_published_log_z() -> None:
    rbm = published_machine()
    h = Bernoulli(4).configurations(torch.arange(16))
    log_z = (-rbm.energy({"hidden": h})).logsumexp(0).item()
    assert log_z == pytest.approx(1.4042286714, abs=5e-11)
    assert ExactLaw(rbm).log_z == close(log_z)


def test_published_log_z_by_quadrature() -> None:
    rbm = published_machine()
    axis = torch.linspace(-12, 12, 1201, dtype=torch.float64)
    v = torch.cartesian_prod(axis, axis)
    log_z = (-rbm.free_energy(v)).logsumexp(0).item() + 2 * math.log(24 / 1200)
    assert log_z == pytest.approx(1.4042286714, abs=1e-9)
