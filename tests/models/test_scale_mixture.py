"""Scale mixtures against mixtures written out: densities, conditionals, gradients, log Z, samples."""

from __future__ import annotations

import copy
import math
import warnings
from pathlib import Path

import pytest
import torch
from torch.distributions import MultivariateNormal

import harmonium as hm
from harmonium.couplings import Bias
from harmonium.learning.monitors import HealthWarning
from harmonium.learning.objectives import PCD, ScaledContrast
from harmonium.learning.transforms import Centering
from harmonium.models import ScaleMixture
from harmonium.testing import scatter

D, M = 3, 4


@pytest.fixture
def mixture(generator: torch.Generator) -> ScaleMixture:
    machine = scatter(hm.SpikeSlabRBM(hm.Gaussian(D), 3, 2), scale=0.5, generator=generator)
    machine.project()
    made = ScaleMixture(machine, 0.3, 4.0, M).double()
    with torch.no_grad():
        made.log_share.copy_(torch.tensor([0.3, -0.5, 1.0, 0.2]))
    return made


def gaussians(generator: torch.Generator) -> ScaleMixture:
    """Return a mixture of Gaussians that differ in scale alone."""
    machine = hm.BoltzmannMachine({"visible": hm.Gaussian(D)}, [(("visible",), Bias(D))])
    return ScaleMixture(scatter(machine, scale=0.5, generator=generator), 0.5, 2.0, M).double()


def test_without_hidden_units_it_is_a_mixture_of_gaussians(generator: torch.Generator) -> None:
    mixture = gaussians(generator)
    units, bias = mixture.machine.layer("visible"), mixture.machine.bias_field("visible")
    z, share = mixture.scales(), mixture.share()
    assert z.tolist() == pytest.approx([0.5, 0.5 * 4 ** (1 / 3), 0.5 * 4 ** (2 / 3), 2.0])
    parts = [MultivariateNormal(s * bias, torch.diag((s * units.sigma) ** 2)) for s in z]  # type: ignore[operator]
    x = 2 * torch.randn(7, D, generator=generator, dtype=torch.float64)
    joint = torch.stack([p.log() + part.log_prob(x) for p, part in zip(share, parts, strict=True)], -1)
    found = hm.log_likelihood(mixture, x)
    torch.testing.assert_close(found.value, joint.logsumexp(-1), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(mixture.scale_probabilities(x), joint.softmax(-1), rtol=1e-10, atol=1e-10)
    assert not torch.allclose(-mixture.machine.free_energy(x) - hm.log_z(mixture).value, joint.logsumexp(-1))


def test_it_is_the_machine_at_each_scale(mixture: ScaleMixture, generator: torch.Generator) -> None:
    x = torch.randn(2, 5, D, generator=generator, dtype=torch.float64)
    parts = [
        p * z**-D * (-mixture.machine.free_energy(x / z)).exp()
        for p, z in zip(mixture.share(), mixture.scales(), strict=True)
    ]
    total = torch.stack(parts).sum(0)
    torch.testing.assert_close(mixture.free_energy(x), -total.log(), rtol=1e-10, atol=1e-10)
    expected = torch.stack(parts, -1) / total[..., None]
    torch.testing.assert_close(mixture.scale_probabilities(x), expected, rtol=1e-10, atol=1e-10)


def test_z_does_not_know_of_scales(mixture: ScaleMixture) -> None:
    """The integral of `e^{-F}` over a line is that of its machine; control: scales without their volume."""
    machine = hm.SpikeSlabRBM(hm.Gaussian(1), 2, generator=torch.Generator().manual_seed(0)).double()
    line = ScaleMixture(machine, 0.5, 2.0, 3).double()
    x = torch.linspace(-60, 60, 200_001, dtype=torch.float64)[:, None]
    step = (x[1] - x[0]).item()
    with torch.no_grad():
        of_machine, of_mixture = ((-model.free_energy(x)).exp().sum().item() * step for model in (machine, line))
        bare = (line.log_share.log_softmax(0) - machine.free_energy(x / line.scales()[:, None, None]).t()).exp()
    assert of_mixture == pytest.approx(of_machine, rel=1e-10)
    assert bare.sum().item() * step != pytest.approx(of_machine, rel=0.1)
    draws = [torch.Generator().manual_seed(0) for _ in range(2)]
    assert hm.log_z(mixture, n_betas=50, generator=draws[0]) == hm.log_z(
        mixture.machine, n_betas=50, generator=draws[1]
    )


def test_samples_and_drawn_scales_follow_the_law(generator: torch.Generator) -> None:
    """Second moments of 20,000 exact samples, and shares of drawn scales, within 5.5 errors."""
    mixture = gaussians(generator)
    x, shares = hm.sample(mixture, 20_000, n_steps=1, generator=generator), mixture.share().tolist()
    square = x.square().sum(1)
    units, bias = mixture.machine.layer("visible"), mixture.machine.bias_field("visible")
    of_machine = units.sigma.square().sum() + bias.square().sum()  # type: ignore[operator]
    expected = (mixture.share() * mixture.scales().square()).sum() * of_machine
    assert abs(square.mean() - expected) < 5.5 * square.std() / math.sqrt(len(x))
    drawn = (x / mixture.divided(x, generator=generator))[:, 0]
    for p, z in zip(shares, mixture.scales(), strict=True):
        count = torch.isclose(drawn, z, rtol=1e-9).double()
        assert abs(count.mean() - p) < 5.5 * math.sqrt(p * (1 - p) / len(x))


def test_the_gradient_of_the_objective_is_that_of_the_likelihood(generator: torch.Generator) -> None:
    """Without hidden units the gradient of `-log p(x)` is known; scales are drawn many times, within 5.5 errors."""
    mixture = gaussians(generator)
    x = torch.randn(6, D, generator=generator, dtype=torch.float64) * 2
    learned = list(mixture.parameters())
    units = mixture.machine.layer("visible")
    field = mixture.machine.couplings[0].bias
    of_z = units.total(units.log_partition(field))  # type: ignore[arg-type]
    exact = torch.autograd.grad(mixture.free_energy(x).mean() + of_z, learned)
    rounds = []
    for _ in range(400):
        mixture.zero_grad(set_to_none=True)
        ScaledContrast(PCD(n_chains=50)).accumulate_grad(mixture, x, generator=generator)
        rounds.append([p.grad.clone() for p in learned])  # type: ignore[union-attr]
    for i, theirs in enumerate(exact):
        ours = torch.stack([found[i] for found in rounds])
        error = ours.std(0) / math.sqrt(len(ours)) + 1e-9
        assert bool(((ours.mean(0) - theirs).abs() < 5.5 * error).all()), (ours.mean(0), theirs)


def test_shares_are_those_of_greatest_likelihood(generator: torch.Generator) -> None:
    """After the fit the gradient with respect to `log_share` is zero; control: before it, it is not."""
    mixture = gaussians(generator)
    x = torch.randn(500, D, generator=generator, dtype=torch.float64)
    x = x * (0.5 + 1.5 * torch.rand(500, 1, generator=generator, dtype=torch.float64))
    slopes = []
    for fitted in (False, True):
        if fitted:
            mixture.fit_share(x, n_steps=3000)
        slopes.append(torch.autograd.grad(mixture.free_energy(x).mean(), mixture.log_share)[0].abs().max())
    assert slopes[0] > 1e-2
    assert slopes[1] < 1e-4


def test_its_machine_stays_proper(generator: torch.Generator) -> None:
    """A rate far too high and long tails: `project` of the machine inside is called after each update."""
    x = torch.randn(256, D, generator=generator) * torch.randn(256, 1, generator=generator).exp()
    mixture = ScaleMixture(hm.SpikeSlabRBM(hm.Gaussian(D), 4, generator=generator), 0.2, 5.0)
    optimizer = torch.optim.Adam([p for p in mixture.parameters() if p.requires_grad], 0.3)
    history = hm.fit(mixture, x, optimizer=optimizer, epochs=5, batch_size=64, monitors=[], generator=generator)
    assert len(history) == 5
    machine = mixture.machine
    assert isinstance(machine, hm.SpikeSlabRBM)
    assert machine.largest_singular_value() <= machine.limit + 1e-6


def test_what_is_watched_is_that_of_its_machine(generator: torch.Generator) -> None:
    """Spikes that stay closed are counted, chains and validation data looked at; control: open ones are not dead."""
    x = torch.randn(600, D, generator=generator) * torch.randn(600, 1, generator=generator).exp()
    for bias, dead in ((-50.0, 4), (0.0, 0)):
        machine = hm.SpikeSlabRBM(hm.Gaussian(D), 4, generator=generator)
        machine.graph.biases["spike"].bias.detach().fill_(bias)
        mixture = ScaleMixture(machine, 0.2, 5.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HealthWarning)
            history = hm.fit(mixture, x[:500], epochs=6, batch_size=100, validation=x[500:], generator=generator)
        last = history.last
        assert (last["n_hidden"], last["dead"]) == (4, dead)
        assert {"free_energy", "contrast", "free_energy_gap", "reconstruction", "r_hat"} <= set(last)


def test_its_machine_is_centered(generator: torch.Generator) -> None:
    """A transform that looks at the phases does to the machine inside what it does to the machine alone."""
    rbm = scatter(hm.RBM(hm.Gaussian(D), hm.Bernoulli(2)), scale=0.5, generator=generator)
    grads, biases = [], []
    for model in (rbm, ScaleMixture(rbm, 0.5, 2.0)):
        made = copy.deepcopy(model)
        inner = made.machine if isinstance(made, ScaleMixture) else made
        x = torch.randn(20, D, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        phases = PCD(n_chains=20).accumulate_grad(inner, x, generator=torch.Generator().manual_seed(1))
        plain = [p.grad.clone() for p in inner.parameters() if p.grad is not None]
        centering = Centering()
        centering.before(made, phases)
        grads.append([p.grad.clone() for p in inner.parameters() if p.grad is not None])
        assert any(not torch.equal(a, b) for a, b in zip(plain, grads[-1], strict=True))
        inner.weight.detach().mul_(2)
        centering.after(made)
        biases.append(inner.hidden_bias.detach().clone())
    assert all(torch.equal(a, b) for a, b in zip(*grads, strict=True))
    assert torch.equal(*biases) and not torch.equal(biases[0], rbm.hidden_bias)


def test_it_is_saved_and_mistakes_are_said(mixture: ScaleMixture, tmp_path: Path) -> None:
    mixture.save(tmp_path / "mixture.safetensors")
    x = torch.ones(2, D, dtype=torch.float64)
    assert torch.equal(hm.load(tmp_path / "mixture.safetensors").free_energy(x), mixture.free_energy(x))
    with pytest.raises(TypeError, match="must be a machine of real data"):
        ScaleMixture(hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2)), 0.5, 2.0)
    with pytest.raises(ValueError, match="must be positive"):
        ScaleMixture(mixture.machine, 2.0, 0.5)
    with pytest.raises(ValueError, match="takes no `given`"):
        hm.sample(mixture, 2, given=torch.full((D,), torch.nan, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"`x` must have shape \(\*batch, 3\)"):
        mixture.free_energy(x[:, :2])
    with pytest.raises(TypeError, match="learns a ScaleMixture"):
        hm.fit(mixture.machine, x, ScaledContrast())
