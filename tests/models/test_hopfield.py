"""Hopfield networks against their formulas, written out term by term."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import harmonium as hm
from harmonium.models import DenseHopfield, Tempered
from harmonium.models.associative_memory import AssociativeMemory
from harmonium.models.hopfield import mean_field_overlap
from harmonium.samplers import Gibbs
from harmonium.testing import check_coupling


def spins(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(seed)).double() * 2 - 1


def flipped(x: Tensor, share: float, seed: int = 1) -> Tensor:
    noise = torch.rand(x.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.where(noise < share, -x, x)


def networks() -> dict[str, AssociativeMemory]:
    patterns = spins(12, 40)  # a load of 0.3: many of them are lost, and recall has a way to go
    found: dict[str, AssociativeMemory] = {
        rule: hm.Hopfield.store(patterns, rule) for rule in ("hebb", "storkey", "pseudo-inverse")
    }
    found["biased"] = hm.Hopfield.store(patterns)
    with torch.no_grad():
        found["biased"].couplings[1].bias.copy_(torch.linspace(-0.3, 0.3, 40))
    return found | {f"dense {k}": hm.Hopfield.dense(patterns, k) for k in (2, 3, 4)}


NETWORKS = networks()


# --- storage ---------------------------------------------------------------------------------------------------------
def test_hebb_is_the_sum_of_outer_products() -> None:
    x = spins(3, 5)
    weight = hm.Hopfield.store(x).weight
    for i in range(5):
        for j in range(5):
            wanted = 0.0 if i == j else sum(float(p[i] * p[j]) for p in x) / 5
            assert weight[i, j].item() == pytest.approx(wanted, abs=1e-15)


def test_storkey_is_its_double_sum() -> None:
    x, n = spins(4, 6), 6
    weight = [[0.0] * n for _ in range(n)]
    for p in x.tolist():
        h = [[sum(weight[i][k] * p[k] for k in range(n) if k not in (i, j)) for j in range(n)] for i in range(n)]
        weight = [
            [weight[i][j] + (p[i] * p[j] - p[i] * h[j][i] - h[i][j] * p[j]) / n if i != j else 0.0 for j in range(n)]
            for i in range(n)
        ]
    torch.testing.assert_close(
        hm.Hopfield.store(x, "storkey").weight, torch.tensor(weight, dtype=torch.float64), rtol=0, atol=1e-14
    )


def test_the_pseudo_inverse_fixes_every_pattern_where_hebb_does_not() -> None:
    x = spins(20, 40)
    exact, hebb = hm.Hopfield.store(x, "pseudo-inverse"), hm.Hopfield.store(x)
    torch.testing.assert_close(exact.recall(x, n_steps=1), x, rtol=0, atol=0)
    assert not torch.equal(hebb.recall(x, n_steps=1), x)
    doubled = hm.Hopfield.store(torch.cat([x, x[:3]]), "pseudo-inverse")  # patterns that are not independent
    torch.testing.assert_close(doubled.weight, exact.weight, rtol=0, atol=1e-12)


def test_images_and_other_dtypes_are_stored() -> None:
    x = spins(3, 4, 5)
    network = hm.Hopfield.store(x.float().numpy())
    assert network.weight.shape == (20, 20) and network.weight.dtype == torch.float32
    assert network.recall(x[0].float()).shape == (4, 5)
    assert torch.equal(hm.Hopfield.store(x.to(torch.int8)).weight, network.weight)


# --- recall ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NETWORKS)
def test_energy_never_rises_under_asynchronous_recall(name: str) -> None:
    network, cues = NETWORKS[name], flipped(spins(12, 40), 0.3)
    energies = [network.energy(cues)]
    end = network.recall(
        cues,
        on_step=lambda i, x: energies.append(network.energy(x)),
        generator=torch.Generator().manual_seed(0),
    )
    path = torch.stack(energies)
    assert bool((path[1:] <= path[:-1] + 1e-12).all()) and bool((path[-1] < path[0]).all())
    for i in range(40):  # it ends where no single flip goes down
        other = end.clone()
        other[:, i] = -other[:, i]
        assert bool((network.energy(other) >= path[-1] - 1e-12).all())


def test_synchronous_recall_may_cycle_and_raise_the_energy() -> None:
    network = hm.Hopfield(2).double()
    with torch.no_grad():
        network.coupling.weight.copy_(torch.tensor([[0.0, -1.0], [-1.0, 0.0]]))
    seen: list[Tensor] = []
    network.recall(
        torch.ones(2, dtype=torch.float64), synchronous=True, n_steps=4, on_step=lambda i, x: seen.append(x.clone())
    )
    assert [x[0].item() for x in seen] == [-1, 1, -1, 1]
    alone = network.recall(torch.ones(2, dtype=torch.float64))
    assert alone.prod() == -1  # one after another they disagree, as they want to


def test_synchronous_recall_is_the_sign_of_the_field() -> None:
    for name, network in NETWORKS.items():
        cues = flipped(spins(12, 40), 0.2)
        field = network.field("x", {"x": cues})
        got = network.recall(cues, synchronous=True, n_steps=1)
        tied = field.abs() < 1e-9
        assert torch.equal(got[~tied], field.sign()[~tied]), name


def test_a_unit_without_a_field_keeps_its_spin() -> None:
    network = hm.Hopfield(3)
    x = torch.tensor([1.0, -1.0, 1.0])
    assert torch.equal(network.recall(x), x) and torch.equal(network.recall(x, synchronous=True), x)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("make", ["hebb", "dense"])
def test_recall_at_a_temperature_keeps_the_law_at_that_temperature(make: str, beta: float) -> None:
    """Chains that start at `e^{-βE}/Z` stay there; those of another temperature do not look like it."""
    patterns = spins(2, 5, seed=3)
    network = hm.Hopfield.store(patterns) if make == "hebb" else hm.Hopfield.dense(patterns, 3)
    with torch.no_grad():
        network.couplings[0].weight.mul_(0.3 if make == "hebb" else 0.5)
    states = network.layer("x").configurations(torch.arange(32)).double()
    law = (-beta * network.energy(states).detach()).softmax(0)
    assert law.min() > 5e-4  # at least 20 chains are expected in each state
    generator = torch.Generator().manual_seed(0)
    start = states[torch.multinomial(law, 40_000, replacement=True, generator=generator)]

    def distance(drawn: Tensor, wanted: Tensor) -> float:
        powers = 2 ** torch.arange(4, -1, -1)
        counts = torch.bincount(((drawn + 1) / 2).long() @ powers, minlength=32)
        return float(((counts - 40_000 * wanted).square() / (40_000 * wanted)).sum())  # χ² with 31 degrees of freedom

    end = network.recall(start, beta=beta, n_steps=2, generator=generator)
    assert distance(end, law) < 95  # P(χ²₃₁ > 95) = 2e-8
    hotter = (-(beta + 1) * network.energy(states).detach()).softmax(0)
    assert distance(end, hotter) > 95


def test_capacity_follows_hebb_storkey_and_the_projector() -> None:
    """At a load of 0.25 of 200 units Hebb's rule has lost all patterns, Storkey's and the projector hold theirs."""
    x = spins(50, 200).float()
    overlap = {
        rule: (hm.Hopfield.store(x, rule).recall(x, generator=torch.Generator().manual_seed(0)) * x).mean().item()
        for rule in ("hebb", "storkey", "pseudo-inverse")
    }
    assert overlap["hebb"] < 0.8 < 0.9 < overlap["storkey"] and overlap["pseudo-inverse"] == 1


def test_the_mean_field_curve_solves_its_equation() -> None:
    loads, overlaps = mean_field_overlap()
    assert loads.max().item() == pytest.approx(0.13791, abs=2e-5)  # Amit, Gutfreund and Sompolinsky (1985): 0.138
    # Their eq.: m = erf(m/√(2αr)), r = 1/(1 - C)², C = √(2/(παr)) e^{-m²/2αr}
    for a, m in list(zip(loads.tolist(), overlaps.tolist(), strict=True))[100::50]:
        y = torch.tensor(m, dtype=torch.float64).erfinv().item()
        r = (m / y) ** 2 / (2 * a)
        c = math.sqrt(2 / (math.pi * a * r)) * math.exp(-(m**2) / (2 * a * r))
        assert r == pytest.approx(1 / (1 - c) ** 2, rel=1e-6)


# --- the relatives ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", [2, 3, 4, 5])
def test_the_dense_field_is_half_the_difference_of_two_energies(order: int) -> None:
    network = DenseHopfield(6, n_patterns=3, order=order, generator=torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        network.weight.mul_(60)
        network.bias.copy_(torch.linspace(-1, 1, 6))
    x = network.layer("x").configurations(torch.arange(64)).double()
    field = network.field("x", {"x": x})
    for i in range(6):
        up, down = x.clone(), x.clone()
        up[:, i], down[:, i] = 1, -1
        torch.testing.assert_close(field[:, i], (network.energy(down) - network.energy(up)) / 2, rtol=0, atol=1e-10)


def test_the_dense_coupling_meets_the_contract() -> None:
    check_coupling(DenseHopfield(4, n_patterns=3, order=3).couplings[0].double())


def test_dense_of_order_two_is_hebb() -> None:
    x, cues = spins(4, 30), flipped(spins(4, 30), 0.2)
    dense, hebb = hm.Hopfield.dense(x, 2), hm.Hopfield.store(x)
    gap = dense.energy(cues) - 2 * hebb.energy(cues)  # E = -N Σ m² against -½ N Σ m² without the diagonal
    torch.testing.assert_close(gap, gap[:1].expand(4), rtol=0, atol=1e-10)


def test_dense_holds_what_hebb_has_lost() -> None:
    x = spins(100, 100).float()
    assert (hm.Hopfield.dense(x, 3).recall(x, n_steps=5) * x).mean() > 0.99
    assert (hm.Hopfield.store(x).recall(x, n_steps=5) * x).mean() < 0.6


def test_the_modern_network_is_attention_and_its_energy_is_ramsauers() -> None:
    x, beta = torch.randn(7, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64), 2.5
    network = hm.Hopfield.modern(x, beta)
    cues = x + 0.1 * spins(7, 5)
    wanted = (beta * cues @ x.T).softmax(-1) @ x
    torch.testing.assert_close(network.reconstruct(cues), wanted, rtol=0, atol=1e-12)
    energy = -(beta * cues @ x.T).logsumexp(-1) / beta + cues.square().sum(-1) / 2
    torch.testing.assert_close(network.free_energy(cues), beta * energy, rtol=0, atol=1e-10)


def test_the_modern_network_recalls_ten_patterns_a_unit_in_one_step() -> None:
    x = spins(1000, 100).float()
    cues = flipped(x.double(), 0.1).float()
    assert torch.equal(hm.Hopfield.modern(x).reconstruct(cues).sign(), x)
    assert not torch.equal(hm.Hopfield.modern(x, 0.01).reconstruct(cues).sign(), x)  # too hot: the mean of all


# --- as any machine --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [hm.Hopfield, lambda n: DenseHopfield(n, n_patterns=10, order=2)])
def test_it_learns_a_law_is_drawn_and_scored(make: type[hm.Hopfield]) -> None:
    teacher, generator = hm.Hopfield.store(spins(2, 5, seed=3).float()), torch.Generator().manual_seed(0)
    states = teacher.layer("x").configurations(torch.arange(32)).float()
    law = (-teacher.energy(states).detach()).softmax(0)
    x = states[torch.multinomial(law, 4000, replacement=True, generator=generator)]
    network = make(5)
    before = hm.log_likelihood(network, x).mean().value
    hm.fit(network, x, hm.CD(n_steps=3), epochs=6, generator=generator)
    nats, best = hm.log_likelihood(network, x).mean(), hm.log_likelihood(teacher, x).mean().value
    assert nats.kind == "exact" and before < best - 0.3 and nats.value > best - 0.05
    drawn = hm.sample(network, 4000, n_steps=20, generator=generator)
    gap = (drawn.T @ drawn - x.T @ x) / 4000  # of correlations, each with a standard error below √(2/4000)
    assert gap.abs().max() < 0.15 < (x.T @ x / 4000 - torch.eye(5)).abs().max()


@pytest.mark.parametrize("units", [hm.Spin, hm.Bernoulli])
def test_the_sweep_of_pairs_draws_as_the_sweep_of_fields(units: type[hm.Spin], monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways draw unit i from the same field, temperatures, clamped units and other layers included."""
    generator = torch.Generator().manual_seed(0)
    machine = hm.BoltzmannMachine(
        {"x": units(4), "h": hm.Bernoulli(2)},
        [(("x", "x"), hm.Symmetric(4)), (("x", "h"), hm.Dense(4, 2, generator=generator)), (("x",), hm.Bias(4))],
    ).double()
    with torch.no_grad():
        for parameter in machine.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    laws = [machine, Tempered(machine, torch.tensor([0.2, 1.0]), {"x": torch.ones(4, dtype=torch.float64)})]
    laws.append(hm.Conditioned(machine, {"h": torch.ones(2, dtype=torch.float64)}))
    for law, batch in zip(laws, [(3,), (2, 3), (3,)], strict=True):
        seen: list[Tensor] = []

        def mode(field: Tensor, *, generator: torch.Generator | None = None, seen: list[Tensor] = seen) -> Tensor:
            seen.append(field.clone())
            return machine.layer("x").mode(field)

        monkeypatch.setattr(machine.layer("x"), "sample", mode)
        state = {"x": machine.layer("x").mode(torch.randn(*batch, 4, generator=generator, dtype=torch.float64))}
        state["h"] = torch.ones(*batch, 2, dtype=torch.float64)
        gibbs = Gibbs(clamp={"x": torch.tensor([False, False, True, False])})
        fast = gibbs.sweep(law, "x", state)
        pairs = list(seen)
        monkeypatch.setattr(type(law), "lateral", lambda self, layer: None)
        seen.clear()
        slow = gibbs.sweep(law, "x", state)
        monkeypatch.undo()
        assert torch.equal(fast, slow) and len(pairs) == len(seen) == 4
        for i in range(4):
            torch.testing.assert_close(pairs[i], seen[i][..., i], rtol=0, atol=1e-12)


# --- errors ----------------------------------------------------------------------------------------------------------
def test_errors_say_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"`patterns` must hold -1 and 1 only. Got values from 0 to 1. .* 2 \* x - 1"):
        hm.Hopfield.store(torch.eye(3))
    with pytest.raises(ValueError, match=r"`x` must hold -1 and 1 only. Got values from 0.5 to 1. Threshold"):
        hm.Hopfield(2).recall(torch.tensor([0.5, 1.0]))
    with pytest.raises(ValueError, match=r"must have shape \(n_patterns, \*shape\). Got \(3,\)"):
        hm.Hopfield.store(torch.ones(3))
    with pytest.raises(ValueError, match="`rule` must be one of 'hebb', 'storkey', 'pseudo-inverse'. Got 'oja'"):
        hm.Hopfield.store(torch.ones(1, 3), "oja")
    with pytest.raises(ValueError, match="`beta` must not be negative"):
        hm.Hopfield(2).recall(torch.ones(2), beta=-1)
    with pytest.raises(ValueError, match=r"must have shape \(\*batch, 2\)"):
        hm.Hopfield(2).recall(torch.ones(3))
    with pytest.raises(ValueError, match="`order` must be at least 2"):
        hm.Hopfield.dense(torch.ones(1, 3), 1)
    with pytest.raises(ValueError, match="`beta` be positive"):
        hm.Hopfield.modern(torch.ones(1, 3), 0)
