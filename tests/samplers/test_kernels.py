"""Single samplers: known laws, known bias, what they refuse.

Statistical checks have a false-alarm rate of 1e-6 each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from harmonium.couplings import Bias, Dense
from harmonium.models import RBM, BoltzmannMachine
from harmonium.samplers import MALA, Gibbs, Langevin, Metropolis, ParallelTempering, Sampler
from harmonium.testing import scatter, tiny_boltzmann_machine, tiny_deep_machine, tiny_rbm
from harmonium.testing.contract import normal_quantile
from harmonium.units import Bernoulli, Categorical, Gaussian, Mixed, Poisson, Spin

Z = normal_quantile(1e-6)


class Well(nn.Module):
    """Not a Boltzmann machine: `F(x) = Σ (x² - 1)²/s + x²/2`, a double well for small s."""

    def __init__(self, s: float) -> None:
        super().__init__()
        self.s = s

    def free_energy(self, x: Tensor) -> Tensor:
        return ((x.square() - 1).square() / self.s + x.square() / 2).sum(-1)

    def draw_exactly(self, n: int, generator: torch.Generator) -> Tensor:
        """Draw by rejection from the standard normal law."""
        found: list[Tensor] = []
        while sum(map(len, found)) < n:
            x = torch.randn(2 * n, 1, generator=generator, dtype=torch.float64)
            u = torch.rand(2 * n, generator=generator, dtype=torch.float64)
            found.append(x[u.log() < -(x[:, 0].square() - 1).square() / self.s])
        return torch.cat(found)[:n]

    def distribution(self, x: Tensor) -> Tensor:
        """The distribution function, by quadrature."""
        grid = torch.linspace(-8, 8, 16001, dtype=torch.float64)
        density = (-self.free_energy(grid[:, None])).exp()
        cumulative = (density.cumsum(0) - density / 2) / density.sum()
        right = torch.searchsorted(grid, x).clamp(1, len(grid) - 1)
        share = (x - grid[right - 1]) / (grid[right] - grid[right - 1])
        return cumulative[right - 1] + share * (cumulative[right] - cumulative[right - 1])


def kolmogorov(x: Tensor, distribution: Callable[[Tensor], Tensor]) -> float:
    ordered = x.flatten().sort().values
    exact = distribution(ordered)
    steps = torch.arange(1, len(ordered) + 1, dtype=torch.float64) / len(ordered)
    return torch.maximum((exact - steps).abs().max(), (exact - steps + 1 / len(ordered)).abs().max()).item()


def run(
    sampler: Sampler, model: nn.Module, x: Tensor, n_steps: int, generator: torch.Generator
) -> tuple[Tensor, float]:
    state = sampler.init(model, x, generator=generator)  # type: ignore[arg-type]
    accepted = 0.0
    for _ in range(n_steps):
        state, info = sampler.step(model, state, generator=generator)  # type: ignore[arg-type]
        accepted += info["accepted"].double().mean().item() if "accepted" in info else 0.0
    return sampler.samples(model, state), accepted / n_steps  # type: ignore[arg-type]


@pytest.mark.parametrize("sampler", [MALA(step_size=0.2), Metropolis(step_size=0.8)], ids=repr)
def test_double_well(sampler: Sampler, generator: torch.Generator) -> None:
    """Any model with `free_energy`: the distribution function after 16 steps from the exact law, by DKW."""
    model, n = Well(1.0), 20000
    x, rate = run(sampler, model, model.draw_exactly(n, generator), 16, generator)
    limit = math.sqrt(math.log(2e6) / (2 * n))
    assert kolmogorov(x, model.distribution) < limit
    assert 0.1 < rate < 0.99
    biased, _ = run(Langevin(step_size=0.08, limit=1.0), model, model.draw_exactly(n, generator), 16, generator)
    assert kolmogorov(biased, model.distribution) > limit  # negative control: without the correction


def test_mala_reaches_the_law_from_elsewhere(generator: torch.Generator) -> None:
    """Two-dimensional Gaussian-Bernoulli RBM, chains started at zero: the mixture's distribution function."""
    rbm = scatter(RBM(Gaussian(2), Bernoulli(3)), scale=0.7, generator=generator)
    x, _ = run(MALA(step_size=0.8), rbm, torch.zeros(10000, 2, dtype=torch.float64), 150, generator)
    h = Bernoulli(3).configurations(torch.arange(8))
    share = (-rbm.energy({"hidden": h})).softmax(0).detach()
    means = rbm.visible_mean(h).detach()
    for i in range(2):
        distance = kolmogorov(x[:, i], lambda v, i=i: torch.special.ndtr(v[:, None] - means[:, i]) @ share)  # type: ignore[misc]
        assert distance < math.sqrt(math.log(2e6) / 20000)


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1.0])
def test_langevin_has_its_known_bias(alpha: float, generator: torch.Generator) -> None:
    """For N(0, s²) the stationary variance of the unadjusted chain is `s²/(1 - α/2s²)`, exactly."""
    s, n = 1.2, 40000
    machine = BoltzmannMachine({"x": Gaussian(1, initial_sigma=s)}, [(("x",), Bias(1))]).double()
    biased = s**2 / (1 - alpha / (2 * s**2))
    start = math.sqrt(biased) * torch.randn(n, 1, generator=generator, dtype=torch.float64)
    x, _ = run(Langevin(step_size=alpha), machine, start, 10, generator)
    variance = x.square().mean().item()
    assert abs(variance / biased - 1) < Z * math.sqrt(2 / n)
    if alpha > 0.1:  # negative control: it is not the variance of the model
        assert abs(variance / s**2 - 1) > Z * math.sqrt(2 / n)
    assert not Langevin.exact


def test_langevin_noise_and_limit(generator: torch.Generator) -> None:
    x = torch.full((4, 1), 3.0, dtype=torch.float64)
    still, _ = run(Langevin(step_size=0.1, noise=0.0), Well(0.5), x, 1, generator)
    slope = 4 * 3.0 * (9 - 1) / 0.5 + 3.0
    assert torch.allclose(still, x - 0.1 * slope)
    limited, _ = run(Langevin(step_size=0.1, noise=0.0, limit=0.25), Well(0.5), x, 1, generator)
    assert torch.allclose(limited, x - 0.25)
    assert Langevin(step_size=0.02).sigma == pytest.approx(0.2)


def test_gradient_samplers_leave_the_parameters_alone(generator: torch.Generator) -> None:
    rbm = tiny_rbm("Gaussian", "Bernoulli")
    rbm.couplings[0].requires_grad_(False)
    before = [(p.requires_grad, p.grad) for p in rbm.parameters()]
    run(MALA(), rbm, torch.zeros(3, 2, dtype=torch.float64), 2, generator)
    assert [(p.requires_grad, p.grad) for p in rbm.parameters()] == before


@pytest.mark.parametrize("sampler", [MALA(step_size=0.3), Langevin(), Metropolis(), Gibbs()], ids=repr)
def test_clamped_coordinates_stay(sampler: Sampler, generator: torch.Generator) -> None:
    rbm = tiny_rbm("Gaussian", "Bernoulli")
    held = replace(sampler, clamp={"visible": torch.tensor([True, False])})
    x = torch.randn(50, 2, generator=generator, dtype=torch.float64)
    moved, _ = run(held, rbm, x, 5, generator)
    assert torch.equal(moved[:, 0], x[:, 0])
    assert not torch.equal(moved[:, 1], x[:, 1])
    fixed, _ = run(replace(sampler, clamp={"visible": True}), rbm, x, 2, generator)
    assert torch.equal(fixed, x)


def test_mala_given_one_coordinate(generator: torch.Generator) -> None:
    """Clamped MALA against the exact conditional law, a mixture of Gaussians reweighted by the known coordinate."""
    rbm = scatter(RBM(Gaussian(2), Bernoulli(3)), scale=0.8, generator=generator)
    x = torch.zeros(10000, 2, dtype=torch.float64)
    x[:, 0] = 1.3
    moved, _ = run(MALA(step_size=0.8, clamp={"visible": torch.tensor([True, False])}), rbm, x, 150, generator)
    h = Bernoulli(3).configurations(torch.arange(8))
    means = rbm.visible_mean(h).detach()
    share = (-rbm.energy({"hidden": h}).detach() - (1.3 - means[:, 0]).square() / 2).softmax(0)
    distance = kolmogorov(moved[:, 1], lambda v: torch.special.ndtr(v[:, None] - means[:, 1]) @ share)
    assert distance < math.sqrt(math.log(2e6) / 20000)


def test_gibbs_starts_from_the_data(generator: torch.Generator) -> None:
    rbm = tiny_rbm("Bernoulli", "Spin")
    x = torch.ones(5, 4, dtype=torch.float64)
    state = Gibbs().init(rbm, x, generator=generator)
    assert list(state) == ["visible", "hidden"]
    assert torch.equal(state["visible"], x)
    after, info = Gibbs().step(rbm, state, generator=generator)
    assert torch.equal(state["visible"], x)  # the state that was given is not written to
    assert torch.allclose(info["fields"]["hidden"], rbm.field("hidden", after))
    deep = Gibbs().init(tiny_deep_machine(), torch.ones(5, 3, dtype=torch.float64), generator=generator)
    assert {name: value.shape for name, value in deep.items()} == {"visible": (5, 3), "middle": (5, 2), "top": (5, 2)}


def test_gibbs_first_draws_visible_then_hidden() -> None:
    """At |field| = 1000 the draws are certain, so the order shows: v follows the old h, h follows the new v."""
    rbm = RBM(Bernoulli(1), Bernoulli(1))
    with torch.no_grad():
        rbm.weight.fill_(2000.0)
        rbm.visible_bias.fill_(-1000.0)
        rbm.hidden_bias.fill_(-1000.0)
    state, _ = Gibbs().step(rbm, {"visible": torch.zeros(1), "hidden": torch.ones(1)})
    assert state["visible"].item() == 1.0
    assert state["hidden"].item() == 1.0


@pytest.mark.parametrize("sampler", [Gibbs(), Metropolis(), ParallelTempering(betas=(0.0, 1.0))], ids=repr)
def test_same_generator_same_chain(sampler: Sampler) -> None:
    rbm = tiny_rbm("Bernoulli", "Spin")
    ends = []
    for seed in (1, 1, 2):
        x = torch.zeros(20, 4, dtype=torch.float64)
        ends.append(run(sampler, rbm, x, 5, torch.Generator().manual_seed(seed))[0])
    assert torch.equal(ends[0], ends[1])
    assert not torch.equal(ends[0], ends[2])


# --- parallel tempering -----------------------------------------------------------------------------------------------
def steep_machine() -> RBM:
    rbm = RBM(Spin(12), Spin(6)).double()
    generator = torch.Generator().manual_seed(5)
    return scatter(rbm, scale=0.8, generator=generator)


def swap_rates(sampler: ParallelTempering, model: RBM, n_steps: int, generator: torch.Generator) -> Tensor:
    state = sampler.init(model, torch.ones(400, 12, dtype=torch.float64), generator=generator)
    total = torch.zeros(len(sampler.betas) - 1, dtype=torch.float64)
    for i in range(2 * n_steps):
        state, info = sampler.step(model, state, generator=generator)
        if i >= n_steps:
            total += info["swap_rates"]
    return total / n_steps


def test_tuning_evens_the_swap_rates(generator: torch.Generator) -> None:
    model = steep_machine()
    uneven = ParallelTempering(betas=(0.0, 0.02, 0.05, 0.1, 1.0))
    before = swap_rates(uneven, model, 60, generator)
    tuned = uneven
    for _ in range(3):
        x = torch.ones(100, 12, dtype=torch.float64)
        tuned = tuned.tune(model, x, n_steps=100, generator=generator)
    after = swap_rates(tuned, model, 60, generator)
    assert before.max() - before.min() > 0.5
    assert after.max() - after.min() < 0.12
    assert tuned.betas[0] == 0.0
    assert tuned.betas[-1] == 1.0
    assert all(low < high for low, high in zip(tuned.betas, tuned.betas[1:], strict=False))


def test_equal_temperatures_would_always_trade(generator: torch.Generator) -> None:
    sampler = ParallelTempering(betas=(1 - 1e-12, 1.0))
    assert swap_rates(sampler, steep_machine(), 5, generator).item() == 1.0


def test_swap_rates_are_between_zero_and_one(generator: torch.Generator) -> None:
    rates = swap_rates(ParallelTempering(), steep_machine(), 5, generator)
    assert rates.shape == (5,)
    assert ((rates >= 0) & (rates <= 1)).all()


@pytest.mark.parametrize("betas", [(), (1.0,), (0.0, 0.5), (0.5, 0.2, 1.0), (0.0, 0.0, 1.0), (-0.1, 1.0), (0.0, 1.2)])
def test_bad_ladders(betas: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="`betas` must rise from at least 0 to exactly 1"):
        ParallelTempering(betas=betas)


# --- what they refuse -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sampler", [Langevin(), MALA()])
@pytest.mark.parametrize("units", [Bernoulli(2), Spin(2), Poisson(2), Mixed(Bernoulli(1), Gaussian(1))])
def test_no_slope_on_discrete_units(sampler: Sampler, units: Bernoulli) -> None:
    with pytest.raises(TypeError, match=r"follows the slope of the energy and needs real-valued units. Got visible="):
        sampler.init(RBM(units, Bernoulli(2)), torch.zeros(1, 2))


@pytest.mark.parametrize("sampler", [Gibbs(), ParallelTempering()])
def test_machines_only(sampler: Sampler) -> None:
    with pytest.raises(TypeError, match="needs a BoltzmannMachine.* Got Well. Use"):
        sampler.init(Well(1.0), torch.zeros(1, 1))


@pytest.mark.parametrize("kind", [Langevin, MALA, Metropolis])
@pytest.mark.parametrize("step_size", [0.0, -1.0, float("nan")])
def test_bad_step_sizes(kind: type, step_size: float) -> None:
    with pytest.raises(ValueError, match="`step_size` must be positive. Got"):
        kind(step_size=step_size)


@pytest.mark.parametrize(
    "units",
    [Mixed(Bernoulli(1), Gaussian(1)), Mixed(Bernoulli(1), Bernoulli(1)), Mixed(Bernoulli(1), Categorical(1, 2))],
)
def test_metropolis_refuses_layers_without_one_proposal(units: Mixed) -> None:
    """Parts of finite units have states of their own: a step up or down by one would leave the support."""
    rbm = RBM(units, Bernoulli(2))
    state = Metropolis().init(rbm, units.sample(torch.zeros(4, *units.shape)))
    with pytest.raises(TypeError, match="Metropolis has no proposal for Mixed"):
        Metropolis().step(rbm, state)


def test_metropolis_needs_a_tractable_energy() -> None:
    deep = BoltzmannMachine(
        {"visible": Bernoulli(3), "middle": Spin(12), "top": Bernoulli(12)},
        [(("visible", "middle"), Dense(3, 12)), (("middle", "top"), Dense(12, 12))],
    )
    with pytest.raises(ValueError, match="Give layer 'top'"):
        Metropolis().init(deep, torch.zeros(4, 3))
    assert "visible" in Metropolis().init(tiny_deep_machine(), torch.zeros(4, 3, dtype=torch.float64))


def test_a_count_never_falls_below_zero(generator: torch.Generator) -> None:
    rbm = tiny_rbm("Poisson", "Bernoulli")
    x, rate = run(Metropolis(), rbm, torch.zeros(200, 2, dtype=torch.float64), 30, generator)
    assert x.min() >= 0
    assert torch.equal(x, x.round())
    assert 0 < rate < 1


def test_a_layer_of_mixed_units_tied_to_itself(generator: torch.Generator) -> None:
    """A one-hot vector is one site: after a sweep it is still one-hot."""
    from harmonium.couplings import Symmetric

    units = Mixed(Spin(2), Categorical(1, 3))
    machine = scatter(BoltzmannMachine({"x": units}, [(("x", "x"), Symmetric(5))]), scale=1.0, generator=generator)
    x = torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0], dtype=torch.float64).expand(500, 5)
    x, _ = run(Gibbs(), machine, x, 10, generator)
    assert torch.equal(x[:, 2:].sum(1), torch.ones(500, dtype=torch.float64))
    assert set(x[:, :2].flatten().tolist()) == {-1.0, 1.0}


def test_three_layers_without_biases(generator: torch.Generator) -> None:
    machine = BoltzmannMachine(
        {"a": Bernoulli(2), "b": Bernoulli(2), "c": Bernoulli(2)},
        [(("a", "b"), Dense(2, 2)), (("b", "c"), Dense(2, 2))],
    )
    x, _ = run(Gibbs(), machine, torch.zeros(7, 2), 3, generator)
    assert x.shape == (7, 2)


def test_site_by_site_respects_a_mask(generator: torch.Generator) -> None:
    machine = tiny_boltzmann_machine()
    sampler = Gibbs(clamp={"x": torch.tensor([True, False, False, True])})
    x = torch.ones(100, 4, dtype=torch.float64)
    moved, _ = run(sampler, machine, x, 3, generator)
    assert torch.equal(moved[:, [0, 3]], x[:, [0, 3]])
    assert (moved[:, 1:3] < 0).any()
