"""Tree-reweighted bounds, Bethe's approximation and perturb-and-MAP against enumeration."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

import harmonium as hm
from harmonium.draws import draw_normal
from harmonium.partition.bethe import bethe, is_forest
from harmonium.partition.pairwise import Pairwise, pairwise
from harmonium.partition.perturb_and_map import perturb_and_map
from harmonium.partition.spanning_trees import spanning_trees
from harmonium.partition.tree_bound import mixture_log_z, tree_bound
from harmonium.testing import ALL_MACHINES, scatter
from harmonium.testing.contract import normal_quantile

PAIRWISE = [n for n in ALL_MACHINES if not any(w in n for w in ("NReLU", "Poisson", "Mixed", "gated", "subspace"))]


def conv_rbm(generator: torch.Generator) -> hm.RBM:
    """Return a convolution of 4×4 binary pixels."""
    coupling = hm.Conv2d(1, 2, kernel=2, stride=2)
    return scatter(hm.RBM(hm.Bernoulli(1, 4, 4), hm.Spin(2, 2, 2), coupling), scale=1.0, generator=generator)


def random_tree(n: int, scale: float, generator: torch.Generator) -> hm.BoltzmannMachine:
    """Return a machine of spins, each tied to one of those before it."""
    units = hm.Spin(n)
    machine = hm.BoltzmannMachine({"x": units}, [(("x", "x"), hm.Symmetric(n)), (("x",), hm.Bias(n))]).double()
    scatter(machine, scale=scale, generator=generator)
    keep = torch.zeros(n, n, dtype=torch.float64)
    for i in range(1, n):
        keep[i, int(torch.randint(i, (), generator=generator))] = 1.0
    with torch.no_grad():
        machine.couplings[0].weight.mul_(keep)
    return machine


def brute_force(graph: Pairwise) -> float:
    """Return log Z of units and pairs, state by state."""
    choices = [torch.nonzero(row.isfinite()).flatten() for row in graph.node]
    states = torch.cartesian_prod(*choices).reshape(-1, graph.n)
    weight = graph.node[torch.arange(graph.n), states].sum(1)
    for (i, j), table in zip(graph.ends.tolist(), graph.edge, strict=True):
        weight = weight + table[states[:, i], states[:, j]]
    return graph.constant + weight.logsumexp(0).item()


@pytest.mark.parametrize("name", PAIRWISE)
def test_units_and_pairs_are_the_machine_and_trees_bound_it(name: str) -> None:
    machine = ALL_MACHINES[name]()
    exact = hm.exact_log_z(machine).value
    assert brute_force(pairwise(machine)) == pytest.approx(exact, abs=1e-10)
    assert tree_bound(machine, n_steps=10) >= exact - 1e-9


def test_convolutions_are_pairs_too(generator: torch.Generator) -> None:
    rbm = conv_rbm(generator)
    graph, exact = pairwise(rbm), hm.exact_log_z(rbm).value
    assert len(graph.ends) == 4 * 4 * 2  # every pixel meets the two channels of its place
    assert exact - 1e-9 <= tree_bound(rbm) <= exact + 20


def test_what_is_no_sum_over_pairs_is_refused() -> None:
    with pytest.raises(ValueError, match="ties three layers at once"):
        pairwise(ALL_MACHINES["gated"]())
    with pytest.raises(ValueError, match="neither finite nor Gaussian"):
        pairwise(ALL_MACHINES["Bernoulli-Poisson"]())


@pytest.mark.parametrize("scale", [0.1, 0.5, 2.0, 10.0])
def test_the_tree_bound_holds_wherever_it_stops(scale: float, generator: torch.Generator) -> None:
    """Any λ gives a bound, far from the best too; a wrong share of the trees does not."""
    for _ in range(3):
        rbm = scatter(hm.RBM(hm.Bernoulli(6), hm.Spin(5)), scale=scale, generator=generator)
        graph, exact = pairwise(rbm), hm.exact_log_z(rbm).value
        trees = spanning_trees(graph)
        for size in (0.0, 0.3, 3.0, 30.0):
            moved = size * draw_normal(torch.empty(len(graph.edge), 2, 2, dtype=torch.float64), generator=generator)
            assert graph.constant + mixture_log_z(graph, trees, moved).item() >= exact - 1e-9 * max(1.0, abs(exact))
        assert exact - 1e-9 <= tree_bound(rbm) <= graph.constant + mixture_log_z(graph, trees, 0 * moved).item() + 1e-9
    wrong = replace(trees, appearance=torch.ones_like(trees.appearance))
    ferromagnet = Pairwise(0.0, graph.node * 0, graph.ends, torch.eye(2).double().expand_as(graph.edge))
    weak = mixture_log_z(ferromagnet, wrong, 0 * moved).item()
    assert weak < brute_force(ferromagnet) - 0.5  # the control: couplings that do not average to the machine's


def test_every_edge_is_in_some_tree_and_no_tree_has_a_loop(generator: torch.Generator) -> None:
    for machine in (conv_rbm(generator), ALL_MACHINES["deep"](), ALL_MACHINES["lateral"]()):
        graph = pairwise(machine)
        trees = spanning_trees(graph)
        assert bool((trees.appearance > 0).all()) and bool((trees.appearance <= 1).all())
        rows = torch.cat(trees.levels)
        for tree in range(trees.n_trees):
            edges = rows[rows[:, 0] == tree, 3]
            assert len(edges.unique()) == len(edges)
            assert is_forest(replace(graph, ends=graph.ends[edges], edge=graph.edge[edges]))


@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0])
def test_bethe_and_the_tree_bound_are_exact_on_trees(scale: float, generator: torch.Generator) -> None:
    for n in (2, 7, 12):
        machine = random_tree(n, scale, generator)
        exact = hm.exact_log_z(machine).value
        found = bethe(machine)
        assert found.trusted and found.value == pytest.approx(exact, abs=1e-10 * max(1.0, abs(exact)))
        assert found.at_least == found.at_most == found.value
        assert tree_bound(machine) == pytest.approx(exact, abs=1e-9 * max(1.0, abs(exact)))
    star = scatter(hm.RBM(hm.Categorical(1, 3), hm.Binomial(5, levels=3)), scale=scale, generator=generator)
    assert bethe(star).value == pytest.approx(hm.exact_log_z(star).value, abs=1e-10 * max(1.0, scale * 20))


def test_bethe_says_that_loops_make_it_an_approximation(generator: torch.Generator) -> None:
    loop = scatter(hm.RBM(hm.Spin(3), hm.Spin(3)), scale=0.5, generator=generator)
    found = bethe(loop)
    assert not found.trusted and "approximation" in found.note and "converge" not in found.note
    assert abs(found.value - hm.exact_log_z(loop).value) > 1e-6  # the control: only trees are exact
    assert (found.at_least, found.at_most) == (-math.inf, math.inf)
    glass = scatter(hm.RBM(hm.Spin(12), hm.Spin(12)), scale=3.0, generator=generator)
    assert "did not converge" in bethe(glass, n_steps=3).note


def test_bethe_without_edges_is_exact() -> None:
    rbm = hm.RBM(hm.Bernoulli(3), hm.Spin(2)).double()
    with torch.no_grad():
        rbm.weight.zero_()
        rbm.visible_bias.copy_(torch.tensor([1.0, -2.0, 0.5]))
    assert bethe(rbm).value == pytest.approx(hm.exact_log_z(rbm).value, abs=1e-12)
    assert tree_bound(rbm) == pytest.approx(hm.exact_log_z(rbm).value, abs=1e-12)


@pytest.mark.parametrize("name", ["Bernoulli-Spin", "Categorical-Binomial", "Gaussian-Bernoulli", "lateral", "deep"])
def test_gumbel_bounds_hold_in_expectation(name: str, generator: torch.Generator) -> None:
    machine = ALL_MACHINES[name]()
    exact = hm.exact_log_z(machine).value
    found = perturb_and_map(machine, n_samples=2000, generator=generator)
    assert found.trusted
    assert found.value + normal_quantile(1e-7) * found.error >= exact
    assert found.lower <= exact <= found.upper + 3 * found.error


def test_gumbel_noise_on_every_state_is_log_z_itself(generator: torch.Generator) -> None:
    """One unit: the bound is an equality, and the mean of the maxima is log Z."""
    rbm = hm.RBM(hm.Categorical(1, 5), hm.Bernoulli(1)).double()
    with torch.no_grad():
        rbm.weight.zero_()
        rbm.visible_bias.copy_(torch.tensor([[1.0, -2.0, 0.5, 0.0, 2.0]]))
        rbm.hidden_bias.fill_(0.7)
    found = perturb_and_map(rbm, n_samples=4000, generator=generator)
    assert abs(found.value - hm.exact_log_z(rbm).value) < normal_quantile(1e-7) * found.error
    assert found.lower < found.value - 0.2  # the control: noise that is divided by the units says less


def test_a_local_search_gives_no_upper_bound(generator: torch.Generator) -> None:
    rbm = scatter(hm.RBM(hm.Bernoulli(20), hm.Bernoulli(20)), scale=0.5, generator=generator)
    found = perturb_and_map(rbm, n_samples=5, generator=generator)
    assert not found.trusted and found.upper == math.inf and "local searches" in found.note
    small = scatter(hm.RBM(hm.Bernoulli(4), hm.Spin(3)), scale=2.0, generator=generator)
    assert perturb_and_map(small, n_samples=5, generator=generator).trusted
