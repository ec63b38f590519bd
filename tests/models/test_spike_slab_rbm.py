"""Spike-and-slab RBMs against Gaussian integrals: conditionals, gradients, log Z; and that they stay proper."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
import torch

import harmonium as hm
from harmonium.partition import log_z
from harmonium.testing import scatter

D, N, K = 3, 4, 2


@pytest.fixture
def machine(generator: torch.Generator) -> hm.SpikeSlabRBM:
    made = scatter(hm.SpikeSlabRBM(hm.Gaussian(D), N, K), scale=0.5, generator=generator)
    with torch.no_grad():
        made.layer("visible").log_sigma.copy_(torch.tensor([-0.3, 0.0, 0.2]))
    made.project()
    return made


def parts(machine: hm.SpikeSlabRBM) -> tuple[torch.Tensor, ...]:
    W, b, c, group = (next(iter(coupling.parameters())).detach() for coupling in machine.couplings)
    return W.reshape(D, N, K), b, c, group, machine.layer("visible").sigma.detach()


def spikes() -> torch.Tensor:
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=N)), dtype=torch.float64)


def exact_log_z(machine: hm.SpikeSlabRBM) -> float:
    """`Σ_h e^{c·h}` times a Gaussian integral over v and all slabs at once, by its determinant."""
    W, b, c, group, sigma = parts(machine)
    terms = []
    for h in spikes():
        quadratic = torch.eye(D + N * K, dtype=torch.float64)
        quadratic[:D, :D] = torch.diag(sigma**-2)
        cross = -(W * h[:, None] / sigma[:, None, None] ** 2).reshape(D, N * K)
        quadratic[:D, D:], quadratic[D:, :D] = cross, cross.t()
        linear = torch.cat([b / sigma**2, (h[:, None] * group).flatten()])
        assert torch.linalg.eigvalsh(quadratic)[0] > 0
        half = 0.5 * linear @ torch.linalg.solve(quadratic, linear)
        terms.append(h @ c + half + 0.5 * (len(quadratic) * math.log(2 * math.pi) - torch.logdet(quadratic)))
    return torch.stack(terms).logsumexp(0).item()


def test_slabs_are_summed_out_in_closed_form(machine: hm.SpikeSlabRBM, generator: torch.Generator) -> None:
    W, b, c, group, sigma = parts(machine)
    v = torch.randn(5, D, generator=generator, dtype=torch.float64)
    drive = torch.einsum("ni,ijk->njk", v / sigma**2, W) + group
    log_odds = c + drive.square().sum(-1) / 2
    rest = (v**2 / (2 * sigma**2) - b * v / sigma**2).sum(1)
    free = rest - N * K / 2 * math.log(2 * math.pi) - torch.log1p(log_odds.exp()).sum(1)
    torch.testing.assert_close(machine.free_energy(v), free, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(machine.spike_mean(v), log_odds.sigmoid(), rtol=1e-10, atol=1e-10)
    h = spikes()[torch.arange(5)]
    torch.testing.assert_close(machine.slab_mean(v, h), h[..., None] * drive, rtol=1e-10, atol=1e-10)


def test_visible_units_given_spikes(machine: hm.SpikeSlabRBM) -> None:
    """Second differences of the energy with the slabs summed out are the precision."""
    h = spikes()[-1]
    assert torch.linalg.eigvalsh(machine.precision(spikes()))[..., 0].min() > 0
    steps = torch.eye(D, dtype=torch.float64)
    for i, j in itertools.product(range(D), repeat=2):
        corners = torch.stack([steps[i] + steps[j], steps[i], steps[j], torch.zeros(D, dtype=torch.float64)])
        energy = machine.energy({"visible": corners, "spike": h.expand(4, -1)})
        found = (energy[0] - energy[1] - energy[2] + energy[3]).item()
        assert found == pytest.approx(machine.precision(h)[i, j].item(), abs=1e-9)


def test_the_gradient_is_that_of_the_free_energy(machine: hm.SpikeSlabRBM, generator: torch.Generator) -> None:
    v = torch.randn(6, D, generator=generator, dtype=torch.float64)
    weight = torch.linspace(-1, 2, 6, dtype=torch.float64)
    learned = [p for p in machine.parameters() if p.requires_grad]
    exact = torch.autograd.grad((machine.free_energy(v) * weight).sum(), learned)
    machine.accumulate_grad(v, weight)
    for parameter, theirs in zip(learned, exact, strict=True):
        torch.testing.assert_close(parameter.grad, theirs, rtol=1e-10, atol=1e-10)


def test_the_sandwich_holds_log_z(machine: hm.SpikeSlabRBM, generator: torch.Generator) -> None:
    z = log_z(machine, method="sandwich", n_chains=400, n_betas=200, generator=generator)
    exact = exact_log_z(machine)
    assert z.lower - 0.01 <= exact <= z.upper + 0.01
    assert z.value == pytest.approx(exact, abs=max(5 * z.error, 5e-3))


def test_chains_have_the_covariance_of_the_law(machine: hm.SpikeSlabRBM, generator: torch.Generator) -> None:
    """The second moment of samples against the exact mixture of Gaussians over all spikes, within 5 errors."""
    W, b, c, group, sigma = parts(machine)
    h = spikes()
    precision = machine.precision(h).detach()
    shift = b / sigma**2 + torch.einsum("nj,ijk,jk->ni", h, W, group) / sigma**2
    mean = torch.linalg.solve(precision, shift)
    log_weight = h @ c + (h @ group.square().sum(1)) / 2 + (shift * mean).sum(1) / 2 - torch.logdet(precision) / 2
    share = log_weight.softmax(0)
    second = (share[:, None, None] * (precision.inverse() + mean[:, :, None] * mean[:, None, :])).sum(0)
    v = hm.sample(machine, 4000, n_steps=300, generator=generator)
    products = v[:, :, None] * v[:, None, :]
    error = products.std(0) / math.sqrt(len(v))
    assert bool(((products.mean(0) - second).abs() < 5.5 * error).all())


def test_it_stays_proper_whatever_learning_does(generator: torch.Generator) -> None:
    """A rate far too high and data with heavy tails; control: without the projection the law is lost."""
    x = torch.randn(256, 6, generator=generator) * torch.randn(256, 1, generator=generator).exp()
    for guarded in (True, False):
        machine = hm.SpikeSlabRBM(hm.Gaussian(6), 8, generator=torch.Generator().manual_seed(0))
        if not guarded:
            machine.project = lambda: None  # type: ignore[method-assign]
        optimizer = torch.optim.Adam([p for p in machine.parameters() if p.requires_grad], 0.3)
        try:
            hm.fit(machine, x, optimizer=optimizer, epochs=10, batch_size=64, monitors=[], generator=generator)
        except hm.learning.TrainingDiverged:
            assert not guarded
            continue
        assert (machine.largest_singular_value() <= machine.limit + 1e-6) == guarded
    with torch.no_grad():
        machine.weight.mul_(1e6)
    hm.SpikeSlabRBM.project(machine)
    assert machine.largest_singular_value() == pytest.approx(machine.limit, rel=1e-5)


def test_a_direction_at_the_limit_leaves_the_others_alone(generator: torch.Generator) -> None:
    """The singular values of W/σ above the limit become it, those below stay; control: W shrunk as a whole."""
    machine = hm.SpikeSlabRBM(hm.Gaussian(6), 3, generator=generator).double()
    left, _, right = torch.linalg.svd(torch.randn(6, 3, generator=generator).double(), full_matrices=False)
    sigma = torch.tensor([0.2, 0.5, 1.0, 1.0, 2.0, 3.0], dtype=torch.float64)
    with torch.no_grad():
        machine.layer("visible").log_sigma.copy_(sigma.log())  # type: ignore[operator]
        machine.weight.copy_(sigma[:, None] * (left * torch.tensor([40.0, 0.6, 0.3])) @ right)
    shrunk = torch.linalg.svdvals(machine.scaled_weight() * machine.limit / 40)
    machine.project()
    found = torch.linalg.svdvals(machine.scaled_weight())
    torch.testing.assert_close(found, torch.tensor([machine.limit, 0.6, 0.3], dtype=torch.float64))
    assert shrunk[1] < 0.02


def test_it_is_saved_and_mistakes_are_said(machine: hm.SpikeSlabRBM, tmp_path: Path) -> None:
    machine.save(tmp_path / "machine.safetensors")
    v = torch.ones(2, D, dtype=torch.float64)
    assert torch.equal(hm.load(tmp_path / "machine.safetensors").free_energy(v), machine.free_energy(v))
    with pytest.raises(TypeError, match="must be Gaussian units"):
        hm.SpikeSlabRBM(hm.Bernoulli(3), 2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"must be in \(0, 1\)"):
        hm.SpikeSlabRBM(hm.Gaussian(3), 2, limit=1.0)
