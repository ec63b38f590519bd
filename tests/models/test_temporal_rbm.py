"""Temporal RBMs against their formula and enumeration; the gradient through time against autograd of the exact law."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

import harmonium as hm
from harmonium.samplers.in_time import complete, generate, predict
from harmonium.testing import scatter

D, H, T = 3, 2, 5
CASES = {"conditional": (2, False), "recurrent": (0, True), "both": (1, True)}


def build(name: str, generator: torch.Generator, frame: hm.Bernoulli | hm.Gaussian | None = None) -> hm.TemporalRBM:
    order, recurrent = CASES[name]
    model = hm.TemporalRBM(hm.Bernoulli(D) if frame is None else frame, hm.Bernoulli(H), order, recurrent=recurrent)
    return scatter(model, scale=0.8, generator=generator)


def films(n: int, generator: torch.Generator) -> Tensor:
    return (torch.rand(n, T, D, generator=generator) < 0.5).double()


def log_p(model: hm.TemporalRBM, film: Tensor) -> Tensor:
    """`Σ_t log p(v_t | past, r_{t-1})` from the formula, with all frames and hidden states in loops over time."""
    W, b, c = model.couplings[0].weight, model.couplings[1].bias, model.couplings[2].bias
    rest = list(model.couplings[3:])
    A, B = (rest.pop(0).weight, rest.pop(0).weight) if model.order else (None, None)
    U = rest.pop(0).weight if model.recurrent else None
    every = hm.Bernoulli(D).configurations(torch.arange(2**D)).double()
    total, memory = torch.zeros((), dtype=torch.float64), torch.zeros(H, dtype=torch.float64)
    for t in range(model.order, len(film)):
        visible, hidden = b, c
        if A is not None and B is not None:
            past = film[t - model.order : t].flatten()
            visible, hidden = visible + past @ A, hidden + past @ B
        if U is not None:
            hidden = hidden + memory @ U

        def minus_f(v: Tensor, visible: Tensor = visible, hidden: Tensor = hidden) -> Tensor:
            return v @ visible + (hidden + v @ W).exp().log1p().sum(-1)

        total = total + minus_f(film[t]) - minus_f(every).logsumexp(0)
        memory = torch.sigmoid(hidden + film[t] @ W)
    return total


@pytest.mark.parametrize("name", CASES)
def test_the_likelihood_of_sequences_is_that_of_the_formula(name: str, generator: torch.Generator) -> None:
    model, film = build(name, generator), films(4, generator)
    found = hm.log_likelihood(model, film)
    assert found.kind == "exact" and found.value.shape == (4, T - model.order)
    exact = torch.stack([log_p(model, one) for one in film])
    torch.testing.assert_close(found.value.sum(1), exact, rtol=1e-10, atol=1e-10)


class ExactNegatives(hm.CD):
    """All frames as negatives, weighted by their probability under the conditions at hand: the exact gradient."""

    def loss(self, model: hm.TemporalRBM, batch: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        state = model.state(batch)
        every = hm.Bernoulli(D).configurations(torch.arange(2**D)).double()
        given = {n: state[n].unsqueeze(-len(model.layer(n).shape) - 1) for n in model.given}
        negative = model.energy({"frame": every, **given})
        share = (-negative).softmax(-1).detach()
        return (model.energy(state) - (share * negative).sum(-1)).sum()


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_goes_through_time(name: str, generator: torch.Generator) -> None:
    """With exact negatives it is that of the exact log-likelihood; control: not with the memory held constant."""
    model, film = build(name, generator), films(3, generator)
    exact = torch.autograd.grad(-sum(log_p(model, one) for one in film), list(model.couplings.parameters()))
    ExactNegatives().accumulate_grad(model, film)
    for parameter, theirs in zip(model.couplings.parameters(), exact, strict=True):
        torch.testing.assert_close(parameter.grad, theirs, rtol=1e-9, atol=1e-9)
    model.zero_grad()
    with torch.no_grad():
        held = model.state(film)
    ExactNegatives().loss(model, held).backward()
    pairs = zip(model.couplings.parameters(), exact, strict=True)
    same = all(torch.allclose(p.grad, theirs) for p, theirs in pairs if p.grad is not None)
    assert same == (not model.recurrent)


@pytest.mark.parametrize("name", CASES)
def test_contrastive_learning_takes_this_path(name: str, generator: torch.Generator) -> None:
    """`CD` on a recurrent machine fills the gradient of what only reaches the data through the memory."""
    model, film = build(name, generator), films(8, generator)
    hm.CD(n_steps=2).accumulate_grad(model, film, generator=generator)
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in model.couplings.parameters())


def test_it_is_saved_and_comes_back(generator: torch.Generator, tmp_path: Path) -> None:
    model, film = build("both", generator), films(3, generator)
    model.save(tmp_path / "model.safetensors")
    assert torch.equal(hm.load(tmp_path / "model.safetensors").free_energy(film), model.free_energy(film))


@pytest.mark.parametrize("name", CASES)
def test_it_learns_a_walking_dot_and_walks_on(name: str, generator: torch.Generator) -> None:
    order, recurrent = CASES[name]
    film = torch.eye(6).repeat(3, 1)[None].expand(32, -1, -1)
    model = hm.TemporalRBM(hm.Bernoulli(6), hm.Bernoulli(100), order, recurrent=recurrent, generator=generator)
    hm.fit(model, film, hm.CD(n_steps=5), epochs=150, batch_size=8, monitors=[], generator=generator)
    error = (predict(model, film[:1], generator=generator) - film[:1, order:])[:, 6:].square().sum(-1).mean().item()
    assert error < 0.2  # the mean of the data has 5/6
    following = generate(model, film[:20, :6], 6, generator=generator)
    assert (following == torch.eye(6)).all(-1).float().mean() > 0.7
    holed = film[:20].clone()
    holed[:, 8] = math.nan
    holed[:, 9, :3] = math.nan
    filled = complete(model, holed, generator=generator)
    assert torch.equal(filled[:, 9, 3:], film[:20, 9, 3:]) and not bool(filled.isnan().any())
    assert (filled[:, 8] == film[:20, 8]).all(-1).float().mean() > 0.7


def test_real_sequences(generator: torch.Generator) -> None:
    """An oscillation with noise: predicted nearly as well as it can be, far better than by its mean."""
    time = torch.arange(30.0)
    phase = 6.3 * torch.rand(64, 1, 1, generator=generator)
    film = torch.stack([time.mul(0.7).cos(), time.mul(0.7).sin()], -1)[None]
    turn = torch.cat([phase.cos(), -phase.sin(), phase.sin(), phase.cos()], -1).reshape(64, 2, 2)
    film = film @ turn + 0.1 * torch.randn(64, 30, 2, generator=generator)
    model = hm.TemporalRBM(hm.Gaussian(2), hm.Bernoulli(8), order=2, generator=generator)
    hm.fit(model, film, epochs=60, batch_size=8, monitors=[], generator=generator)
    error = (predict(model, film[:8], generator=generator) - film[:8, 2:]).square().sum(-1).mean().item()
    assert error < 0.2  # the mean of the data has 1; the noise alone 0.02, and what it does to the past as much again
    assert hm.sample(model, 5, n_steps=10, given=model.conditions(film[0]), generator=generator).shape == (5, 2)


def test_sequences_that_cannot_be(generator: torch.Generator) -> None:
    model = hm.TemporalRBM(hm.Bernoulli(4), hm.Bernoulli(2), order=3)
    with pytest.raises(ValueError, match="at least 4 frames for order=3. Got 3"):
        model.free_energy(torch.zeros(2, 3, 4))
    with pytest.raises(ValueError, match="at least 4 frames for order=3"):
        hm.fit(model, torch.zeros(5, 3, 4), epochs=1)
    with pytest.raises(ValueError, match=r"must have shape \(\*batch, n_frames, 4\)"):
        model.free_energy(torch.zeros(2, 9, 5))
    with pytest.raises(ValueError, match="'past' is a condition of this machine"):
        hm.sample(model, 3)
    with pytest.raises(ValueError, match="or 0 with recurrent=True. Got 0"):
        hm.TemporalRBM(hm.Bernoulli(4), hm.Bernoulli(2), order=0)
    with pytest.raises(ValueError, match="first 3 frames must be known"):
        complete(model, torch.full((1, 9, 4), math.nan))
    with pytest.raises(ValueError, match="complete"):
        hm.fit(model, torch.where(torch.rand(5, 9, 4, generator=generator) < 0.2, math.nan, 0.0), epochs=1)
