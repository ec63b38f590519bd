"""The subspace RBM against eq. 6.44-6.47 of Tomczak's chapter, evaluated in loops, to 1e-10."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
import torch

import harmonium as hm
from harmonium.data import load
from harmonium.partition import log_z
from harmonium.testing import scatter

D, M, K = 3, 2, 2
TOLERANCE = 1e-10
XS = list(itertools.product((0, 1), repeat=D))
HS = list(itertools.product((0, 1), repeat=M))
SS = list(itertools.product((0, 1), repeat=M * K))

Bits = tuple[int, ...]


def close(value: float) -> object:
    return pytest.approx(value, rel=TOLERANCE, abs=TOLERANCE)


def sigm(a: float) -> float:
    return 1 / (1 + math.exp(-a))


@pytest.fixture
def machine(generator: torch.Generator) -> hm.SubspaceRBM:
    return scatter(hm.SubspaceRBM(hm.Bernoulli(D), M, K), scale=1.0, generator=generator)


def energy(machine: hm.SubspaceRBM, x: Bits, h: Bits, s: Bits) -> float:
    """Eq. 6.44, term by term."""
    W = machine.weight.detach().reshape(D, M, K).tolist()
    b, c, group = (machine.couplings[i].bias.detach().tolist() for i in (1, 2, 3))
    total = 0.0
    for j in range(M):
        for k in range(K):
            for i in range(D):
                total -= W[i][j][k] * x[i] * h[j] * s[j * K + k]
            total -= h[j] * group[j][k] * s[j * K + k]
        total -= c[j] * h[j]
    return total - sum(b[i] * x[i] for i in range(D))


def tensors(*bits: Bits) -> list[torch.Tensor]:
    x, h, s = (torch.tensor(values, dtype=torch.float64) for values in (*bits, (0,) * M, (0,) * M * K)[:3])
    return [x, h, s.reshape(M, K)]


def test_energy_free_energy_and_conditionals(machine: hm.SubspaceRBM) -> None:
    W = machine.weight.detach().reshape(D, M, K).tolist()
    b, c, group = (machine.couplings[i].bias.detach().tolist() for i in (1, 2, 3))
    for x in XS:
        v = tensors(x)[0]
        joint = {(h, s): math.exp(-energy(machine, x, h, s)) for h in HS for s in SS}
        assert machine.free_energy(v).item() == close(-math.log(sum(joint.values())))
        for j in range(M):
            total = [sum(W[i][j][k] * x[i] for i in range(D)) + group[j][k] for k in range(K)]
            formula = sigm(-K * math.log(2) + c[j] + sum(math.log1p(math.exp(a)) for a in total))  # eq. 6.47
            summed = sum(p for (h, _), p in joint.items() if h[j]) / sum(joint.values())
            assert machine.gate_mean(v)[j].item() == close(formula)
            assert machine.gate_field(v)[j].item() == close(math.log(formula / (1 - formula)))
            assert summed == close(formula)
            without = sigm(c[j] + sum(math.log1p(math.exp(a)) for a in total))
            assert abs(without - formula) > 1e-3  # control: the term -K log 2 matters
        for h, s in joint:
            _, gate, subspace = tensors(x, h, s)
            state = {"visible": v, "gate": gate, "subspace": subspace}
            assert machine.energy(state).item() == close(energy(machine, x, h, s))
            for i in range(D):  # eq. 6.45
                field = b[i] + sum(W[i][j][k] * h[j] * s[j * K + k] for j in range(M) for k in range(K))
                assert machine.visible_mean(gate, subspace)[i].item() == close(sigm(field))
            for j, k in itertools.product(range(M), range(K)):  # eq. 6.46
                field = h[j] * (sum(W[i][j][k] * x[i] for i in range(D)) + group[j][k])
                assert machine.subspace_mean(v, gate)[j, k].item() == close(sigm(field))


def test_the_gradient_is_that_of_the_free_energy(machine: hm.SubspaceRBM) -> None:
    """Closed form, against autograd of the brute-force sum over all gates and subspace units."""
    x = torch.tensor(XS, dtype=torch.float64)
    weight = torch.linspace(-1, 2, len(x), dtype=torch.float64)
    machine.accumulate_grad(x, weight)
    found = [parameter.grad for parameter in machine.parameters()]
    h = torch.tensor(HS, dtype=torch.float64)[:, None, None]
    s = torch.tensor(SS, dtype=torch.float64).reshape(1, -1, 1, M, K)
    joint = machine.energy({"visible": x, "gate": h, "subspace": s})
    exact = torch.autograd.grad((-(-joint).flatten(end_dim=1).logsumexp(0) * weight).sum(), list(machine.parameters()))
    for ours, theirs in zip(found, exact, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE)
    means = machine.infer(x)  # control: at the means, as if gates and groups were independent, it is another
    machine.zero_grad()
    with torch.no_grad():
        machine.add_gradient(means, weight, {"visible": x})
    assert not torch.allclose(machine.weight.grad, exact[0], atol=1e-3)  # type: ignore[arg-type]


def test_it_is_saved_and_comes_back(machine: hm.SubspaceRBM, tmp_path: Path) -> None:
    machine.save(tmp_path / "machine.safetensors")
    x = torch.tensor(XS, dtype=torch.float64)
    assert torch.equal(hm.load(tmp_path / "machine.safetensors").free_energy(x), machine.free_energy(x))


def test_gates_and_groups_are_drawn_at_once(machine: hm.SubspaceRBM) -> None:
    assert machine.blocks() == [("visible",), ("gate", "subspace")]


def test_the_sandwich_holds_log_z(generator: torch.Generator) -> None:
    machine = scatter(hm.SubspaceRBM(hm.Bernoulli(8), 5, 3), scale=0.7, generator=generator)
    z = log_z(machine, method="sandwich", n_chains=200, n_betas=200, generator=generator)
    exact = hm.exact_log_z(machine).value
    assert z.trusted and z.lower <= exact <= z.upper
    assert z.value == pytest.approx(exact, abs=max(5 * z.error, 1e-3))


def test_it_learns_and_fills_in(generator: torch.Generator) -> None:
    """Bars and stripes: above independent units by far."""
    x = load("bars-and-stripes").train.flatten(1).float()
    machine = hm.SubspaceRBM(hm.Bernoulli(16), 12, 2, generator=generator)
    optimizer = torch.optim.Adam(machine.parameters(), 0.03)
    hm.fit(machine, x, hm.CD(), optimizer=optimizer, epochs=300, monitors=[], generator=generator)
    assert hm.log_likelihood(machine, x).mean().value > -16 * math.log(2) + 4
    given = x[:4].clone()
    given[:, 8:] = math.nan
    assert torch.equal(hm.sample(machine, 4, n_steps=20, given=given, generator=generator)[:, :8], x[:4, :8])


def likeness(machine: hm.SubspaceRBM) -> float:
    """Return the mean cosine between two filters of one group."""
    filters = torch.nn.functional.normalize(machine.weight.detach().t().unflatten(0, (-1, 3)), dim=-1)
    return ((filters @ filters.mT).sum((1, 2)) / 6 - 0.5).mean().item()


def test_the_filters_of_a_group_learn_to_differ() -> None:
    """Control: from weights as small as those of an RBM they become one filter."""
    x = load("digits", binarize="threshold").train.flatten(1)
    found = {}
    for shrink in (1.0, 0.08):
        generator = torch.Generator().manual_seed(0)
        machine = hm.SubspaceRBM(hm.Bernoulli(64), 10, 3, generator=generator)
        assert machine.weight.std().item() == pytest.approx(1 / 8)
        with torch.no_grad():
            machine.weight.mul_(shrink)
        hm.initialize(machine, x.float())
        optimizer = torch.optim.Adam(machine.parameters(), 0.01)
        hm.fit(machine, x, hm.CD(), optimizer=optimizer, epochs=10, monitors=[], generator=generator)
        found[shrink] = likeness(machine)
    assert found[1.0] < 0.75 and found[0.08] > 0.9
