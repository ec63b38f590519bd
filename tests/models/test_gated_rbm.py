"""Gated RBMs against enumeration, and on transformations that they can tell."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch

import harmonium as hm
from harmonium.couplings import Factored
from harmonium.data.transformed import shifted_dots, turned, turned_dots
from harmonium.runs.kinds.gated_rbm import accuracy
from harmonium.testing import scatter

X, Y, H, F = 3, 4, 2, 3


@pytest.fixture
def machine(generator: torch.Generator) -> hm.GatedRBM:
    return scatter(hm.GatedRBM(X, hm.Spin(Y), hm.Bernoulli(H), F), scale=0.8, generator=generator)


def test_the_law_given_an_input_by_enumeration(machine: hm.GatedRBM, generator: torch.Generator) -> None:
    """`p(y | x)` from `Σ_f (x·U_f)(y·V_f)(h·W_f)` written out, over all outputs and hidden states."""
    U, V, W = (filters.detach() for filters in machine.coupling.filters)
    b, c = machine.couplings[1].bias.detach(), machine.couplings[2].bias.detach()
    x = torch.randn(X, generator=generator, dtype=torch.float64)
    ys = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=Y)), dtype=torch.float64)
    hs = torch.tensor(list(itertools.product((0.0, 1.0), repeat=H)), dtype=torch.float64)
    phi = torch.zeros(len(ys), len(hs), dtype=torch.float64)
    for i, j in itertools.product(range(len(ys)), range(len(hs))):
        phi[i, j] = sum((x @ U[:, f]) * (ys[i] @ V[:, f]) * (hs[j] @ W[:, f]) for f in range(F)) + b @ ys[i] + c @ hs[j]
    exact = phi.logsumexp(1) - phi.flatten().logsumexp(0)
    found = hm.log_likelihood(machine, {"input": x.expand(len(ys), -1), "output": ys})
    assert found.kind == "exact"
    torch.testing.assert_close(found.value, exact, rtol=1e-10, atol=1e-10)
    means = machine.hidden_mean(x.expand(len(ys), -1), ys)
    torch.testing.assert_close(means, phi.softmax(1) @ hs, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(
        machine.output_mean(x.expand(len(hs), -1), hs), phi.softmax(0).t() @ ys, rtol=1e-10, atol=1e-10
    )


def test_factored_is_a_third_order_tensor_of_low_rank(generator: torch.Generator) -> None:
    form = scatter(hm.GatedRBM(X, hm.Spin(Y), hm.Bernoulli(H), F), generator=generator).coupling
    whole = hm.couplings.ThirdOrder(X, Y, H).double()
    with torch.no_grad():
        whole.weight.copy_(torch.einsum("if,jf,kf->ijk", *form.filters))
    xs = [torch.randn(5, n, generator=generator, dtype=torch.float64) for n in (X, Y, H)]
    torch.testing.assert_close(form(*xs), whole(*xs))
    assert isinstance(form, Factored) and sum(p.numel() for p in form.parameters()) == F * (X + Y + H)


def test_shifts_are_told_from_the_hidden_units_and_carried_over(generator: torch.Generator) -> None:
    """Shifts of random dots on 6x6 by a linear classifier; control: random weights."""
    pairs, label = shifted_dots(4000, size=6, generator=generator)
    x = 2.0 * pairs.flatten(2) - 1
    machine = hm.GatedRBM(36, hm.Spin(36), hm.Bernoulli(40), 100, generator=generator)
    train, test = (x[:3000], label[:3000]), (x[3000:], label[3000:])
    control = accuracy(machine, train, test)
    optimizer = torch.optim.Adam([p for p in machine.parameters() if p.requires_grad], 0.01)
    data = {"input": x[:3000, 0], "output": x[:3000, 1]}
    hm.fit(machine, data, optimizer=optimizer, epochs=25, batch_size=50, monitors=[], generator=generator)
    assert accuracy(machine, train, test) > 0.95 > 0.6 > control
    fresh, _ = shifted_dots(500, size=6, generator=generator)
    other = 2.0 * fresh[:, 0].flatten(1) - 1
    carried = machine.apply_analogy(x[3000:3500, 0], x[3000:3500, 1], other)
    down, across = label[3000:3500] // 3 - 1, label[3000:3500] % 3 - 1
    images, truth = carried.reshape(-1, 6, 6), other.reshape(-1, 6, 6)
    rolled = torch.stack([t.roll((int(d), int(a)), (0, 1)) for t, d, a in zip(truth, down, across, strict=True)])
    agree = (images.sign() == rolled)[:, 1:-1, 1:-1].double().mean().item()
    assert agree > 0.9  # of the pixels that a shift does not bring in from outside; chance is 0.5
    drawn = hm.sample(machine, 10, n_steps=5, given={"input": x[0, 0]}, generator=generator)
    assert drawn.shape == (10, 36)


def test_transformed_pairs(generator: torch.Generator) -> None:
    pairs, label = shifted_dots(200, size=7, reach=2, generator=generator)
    assert pairs.shape == (200, 2, 7, 7) and int(label.max()) == 24
    for pair, k in zip(pairs, label.tolist(), strict=True):
        moved = pair[0].roll((k // 5 - 2, k % 5 - 2), (0, 1))
        assert torch.equal(moved[2:-2, 2:-2], pair[1][2:-2, 2:-2])
    pairs, label = turned_dots(100, size=7, n_angles=4, generator=generator)
    for pair, k in zip(pairs, label.tolist(), strict=True):
        assert torch.equal(pair[0].rot90(k), pair[1]) or torch.equal(pair[0].rot90(-k), pair[1])
    assert torch.equal(turned(pairs[:, 0], 0.0, pairs[:, 1]), pairs[:, 0])
    with pytest.raises(ValueError, match="`reach` must be in"):
        shifted_dots(3, size=6, reach=3)


def test_it_is_saved_and_mistakes_are_said(machine: hm.GatedRBM, tmp_path: Path) -> None:
    machine.save(tmp_path / "machine.safetensors")
    x, y = torch.ones(2, X, dtype=torch.float64), torch.ones(2, Y, dtype=torch.float64)
    again = hm.load(tmp_path / "machine.safetensors")
    assert torch.equal(again.hidden_mean(x, y), machine.hidden_mean(x, y))
    with pytest.raises(ValueError, match="'input' is a condition of this machine"):
        machine.free_energy(y)
    with pytest.raises(ValueError, match=r"samples are drawn given its value. .* given=\{'input': …\}"):
        hm.sample(machine, 3)
