"""Every objective for neural energies: closed forms for Gaussians, and a mixture in the plane by quadrature."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

import harmonium as hm
from harmonium.data import mixture, mixture_log_density
from harmonium.learning.objectives import (
    DenoisingScoreMatching,
    NoiseContrastive,
    Objective,
    ReplayBuffer,
    SlicedScoreMatching,
)
from tests.neural.quadrature import Quadratic, kl_from, log_z_on, plane

LAW = {"n_components": 3, "radius": 1.5, "std": 0.5}


def gaussian_kl(log_p: Tensor, x: Tensor, cell: float) -> float:
    """Return the KL of the best Gaussian: what a model that sees two moments only can reach."""
    p = log_p.double().exp() * cell
    mean = (p[:, None] * x).sum(0)
    covariance = (x - mean).t().double() @ (p[:, None] * (x - mean).double())
    entropy = -(p * log_p.double()).sum()
    return float(math.log(2 * math.pi * math.e) + torch.logdet(covariance) / 2 - entropy)


def objectives() -> dict[str, Objective]:
    chains = ReplayBuffer(n_chains=1000, renewal=0.02)
    return {
        "maximum likelihood": hm.learning.objectives.JointLikelihood(
            n_steps=5, sampler=hm.Langevin(0.02), buffer=chains
        ),
        "maximum likelihood, MALA": hm.learning.objectives.JointLikelihood(
            n_steps=5, sampler=hm.MALA(0.05), buffer=chains
        ),
        "denoising": DenoisingScoreMatching(sigma=0.2),
        "sliced": SlicedScoreMatching(n_projections=2),
        "noise-contrastive": NoiseContrastive(hm.laws.GaussianLaw(torch.zeros(2), 1.3), ratio=2),
    }


@pytest.mark.parametrize("name", objectives())
def test_the_density_of_a_mixture_is_learned(name: str, generator: torch.Generator) -> None:
    objective = objectives()[name]
    std = math.hypot(LAW["std"], objective.sigma) if name == "denoising" else LAW["std"]
    grid, cell = plane(-4.5, 4.5, 121)
    log_p = mixture_log_density(grid.double(), **{**LAW, "std": std})
    data = mixture(4000, **LAW, generator=generator)
    model = hm.NeuralEBM(hm.MLP(2, hidden=(64, 64), generator=generator), box=(-3.0, 3.0), base_std=2.0)
    before = kl_from(log_p, model, grid, cell)
    assert len(list(objective.parameters())) == (1 if name == "noise-contrastive" else 0)
    optimizer = torch.optim.Adam([*model.parameters(), *objective.parameters()], 5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    hm.fit(
        model,
        data,
        objective,
        optimizer=optimizer,
        epochs=20,
        batch_size=200,
        schedule=schedule,
        monitors=[],
        generator=generator,
    )
    after, moments = kl_from(log_p, model, grid, cell), gaussian_kl(log_p, grid, cell)
    assert after < moments / 3 < before
    if name == "noise-contrastive":
        assert objective.log_z.item() == pytest.approx(log_z_on(model, grid, cell), abs=0.15)


def test_denoising_finds_the_smoothed_gaussian(generator: torch.Generator) -> None:
    """For `x²/2s²` and data of variance v the loss is `½d((v + σ²)σ²/s⁴ - 2σ²/s² + 1)`, least at `s² = v + σ²`."""
    x = torch.randn(200_000, 2, generator=generator, dtype=torch.float64) * 0.8
    sigma, v = 0.5, x.square().mean().item()
    for s in (0.7, math.sqrt(v + sigma**2), 1.3):
        loss = DenoisingScoreMatching(sigma).loss(hm.NeuralEBM(Quadratic(s)), x, generator=generator).item()
        expected = (v + sigma**2) * sigma**2 / s**4 - 2 * sigma**2 / s**2 + 1
        assert loss == pytest.approx(expected, abs=0.01)
    slopes = []
    for std in (math.sqrt(v + sigma**2), math.sqrt(v)):
        model = hm.NeuralEBM(Quadratic(std))
        DenoisingScoreMatching(sigma).loss(model, x, generator=generator).backward()
        slopes.append(abs(model.net.log_std.grad.item()))
    assert slopes[0] < 0.01 < 0.1 < slopes[1]


def test_sliced_score_matching_is_its_closed_form(generator: torch.Generator) -> None:
    """For `x²/2s²` the loss is `E[-‖v‖²/s² + ½‖x‖²/s⁴]`, least at the variance of the data."""
    x = torch.randn(100_000, 2, generator=generator, dtype=torch.float64) * 0.8
    v = x.square().mean().item()
    slopes = []
    for s in (math.sqrt(v), 1.2):
        model = hm.NeuralEBM(Quadratic(s))
        loss = SlicedScoreMatching().loss(model, x, generator=generator)
        assert loss.item() == pytest.approx(-2 / s**2 + v / s**4, abs=0.05)
        loss.backward()
        slopes.append(abs(model.net.log_std.grad.item()))
    assert slopes[0] < 0.1 < 0.3 < slopes[1]


def test_noise_contrastive_estimation_rests_at_the_truth(generator: torch.Generator) -> None:
    n, s = 200_000, 0.8
    x = torch.randn(n, 2, generator=generator, dtype=torch.float64) * s
    slopes = []
    for std, log_z in ((s, math.log(2 * math.pi * s**2)), (s, 0.0), (1.2, math.log(2 * math.pi * 1.2**2))):
        objective = NoiseContrastive(hm.laws.GaussianLaw(torch.zeros(2, dtype=torch.float64)), ratio=2)
        objective.log_z = nn.Parameter(torch.tensor(log_z, dtype=torch.float64))
        model = hm.NeuralEBM(Quadratic(std))
        objective.loss(model, x, generator=generator).backward()
        slopes.append(max(abs(objective.log_z.grad.item()), abs(model.net.log_std.grad.item())))
    assert slopes[0] < 0.01
    assert min(slopes[1:]) > 0.05


def test_gradients_agree_with_differences(generator: torch.Generator) -> None:
    """The second derivatives inside score matching, against finite differences in a parameter."""
    x = torch.randn(6, 2, generator=generator, dtype=torch.float64)
    net = hm.MLP(2, hidden=(5,), generator=generator).double()
    model, weight = hm.NeuralEBM(net), net.layers[1].weight
    for objective in (DenoisingScoreMatching(0.3), SlicedScoreMatching()):
        losses = []
        for shift in (0.0, 1e-5, -2e-5):
            with torch.no_grad():
                weight[0, 0] += shift
            losses.append(objective.loss(model, x, generator=torch.Generator().manual_seed(2)))
        with torch.no_grad():
            weight[0, 0] += 1e-5
        model.zero_grad()
        objective.loss(model, x, generator=torch.Generator().manual_seed(2)).backward()
        assert weight.grad[0, 0].item() == pytest.approx((losses[1] - losses[2]).item() / 2e-5, rel=1e-5)


@pytest.mark.parametrize("name", ["denoising", "sliced", "noise-contrastive"])
def test_layers_beside_the_data_are_refused(name: str, generator: torch.Generator) -> None:
    objective, jem = objectives()[name], hm.JEM(hm.MLP(2, 3, generator=generator))
    x = torch.randn(6, 2, generator=generator)
    seeds = [torch.Generator().manual_seed(1) for _ in range(2)]
    bare, named = objective.loss(jem, x, generator=seeds[0]), objective.loss(jem, {"x": x}, generator=seeds[1])
    assert torch.equal(bare, named)
    with pytest.raises(ValueError, match=r"learns from layer 'x' alone. Got \['x', 'y'\]"):
        objective.loss(jem, {"x": x, "y": torch.arange(6) % 3}, generator=generator)


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="`sigma` must be positive"):
        DenoisingScoreMatching(0.0)
    with pytest.raises(ValueError, match="`n_projections`"):
        SlicedScoreMatching(0)
    with pytest.raises(ValueError, match="`ratio`"):
        NoiseContrastive(hm.laws.GaussianLaw(torch.zeros(2)), ratio=0)
