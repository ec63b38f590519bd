"""Gradient transforms against their formulas."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import harmonium as hm
from harmonium.learning.objectives import Phases
from harmonium.learning.transforms import NormLimit
from harmonium.testing import scatter
from tests.learning.machines import draw_data, gradient_of, make


def with_gradient(name: str, generator: torch.Generator) -> tuple[hm.BoltzmannMachine, Phases]:
    machine = make(name)
    phases = hm.PCD(n_chains=11).accumulate_grad(machine, draw_data(machine, 8, generator), generator=generator)
    return machine, phases


@pytest.mark.parametrize("name", ["Bernoulli", "Convolution", "Gaussian"])
def test_weight_decay_adds_the_weights(name: str, generator: torch.Generator) -> None:
    machine, phases = with_gradient(name, generator)
    before = gradient_of(machine)
    hm.WeightDecay(0.1).before(machine, phases)
    for key, parameter in machine.named_parameters():
        extra = 0.1 * parameter if key == "couplings.0.weight" else 0.0
        assert torch.allclose(parameter.grad, before[key] + extra, atol=1e-15), key


def test_widths_and_biases_of_images_are_not_weights(generator: torch.Generator) -> None:
    """σ and biases of image-shaped layers have three axes, but are neither decayed nor scaled back."""
    rbm, _ = with_gradient("Convolution", generator)
    before = {key: value.detach().clone() for key, value in rbm.named_parameters()}
    NormLimit(1e-3).after(rbm)
    changed = {key for key, value in rbm.named_parameters() if not torch.equal(value, before[key])}
    assert changed == {"couplings.0.weight"}


def test_norm_limit_scales_back_each_hidden_unit() -> None:
    rbm = make("Bernoulli")
    with torch.no_grad():
        rbm.weight[:, 0] *= 0.01
        rbm.weight[:, 1] *= 100
    before = rbm.weight.detach().clone()
    NormLimit(1.0).after(rbm)
    norm = before.norm(dim=0)
    assert torch.allclose(rbm.weight, before * (1 / norm).clamp_max(1.0))
    assert torch.equal(rbm.weight[:, 0], before[:, 0])
    assert rbm.weight[:, 1].norm().item() == pytest.approx(1.0)
    conv = scatter(hm.RBM(hm.Bernoulli(1, 4, 4), hm.Bernoulli(2, 3, 3), hm.Conv2d(1, 2, kernel=2)), scale=9.0)
    NormLimit(1.0).after(conv)
    assert conv.weight.flatten(1).norm(dim=1).tolist() == pytest.approx([1.0, 1.0])


def test_clip_gradient_keeps_the_direction(generator: torch.Generator) -> None:
    machine, phases = with_gradient("Gaussian", generator)
    before = torch.cat([g.flatten() for g in gradient_of(machine).values()])
    hm.learning.transforms.ClipGradient(before.norm().item() / 4).before(machine, phases)
    after = torch.cat([g.flatten() for g in gradient_of(machine).values()])
    assert torch.allclose(after, before / 4, rtol=1e-5)
    hm.learning.transforms.ClipGradient(1e6).before(machine, phases)
    assert torch.allclose(torch.cat([g.flatten() for g in gradient_of(machine).values()]), after)


def test_sparsity_pushes_the_hidden_biases(generator: torch.Generator) -> None:
    machine, phases = with_gradient("Bernoulli", generator)
    sparsity = hm.Sparsity(target=0.1, rate=2.0, decay=0.9)
    before = gradient_of(machine)
    q = phases.positive["hidden"].mean(0)
    sparsity.before(machine, phases)
    expected = before["couplings.2.bias"] + 2.0 * (q - 0.1)
    assert torch.allclose(machine.hidden_bias.grad, expected, atol=1e-12)
    assert torch.equal(machine.weight.grad, before["couplings.0.weight"])
    other = Phases({"hidden": torch.ones(4, 3).double()}, {}, ("hidden",))
    sparsity.before(machine, other)
    expected = expected + 2.0 * (0.9 * q + 0.1 - 0.1)
    assert torch.allclose(machine.hidden_bias.grad, expected, atol=1e-12)
    assert torch.allclose(sparsity.state_dict()["hidden"], 0.9 * q + 0.1)


def test_sparsity_lowers_the_activity(generator: torch.Generator) -> None:
    x = torch.eye(6).repeat(20, 1)
    activities = []
    for transforms in ([], [hm.Sparsity(target=0.05, rate=1.0)]):
        rbm = hm.RBM(hm.Bernoulli(6), hm.Bernoulli(8), generator=torch.Generator().manual_seed(0))
        optimizer = torch.optim.SGD(rbm.parameters(), 0.5)
        hm.fit(rbm, x, hm.CD(), optimizer=optimizer, epochs=30, batch_size=40, transforms=transforms, monitors=[],
               generator=generator)  # fmt: skip
        activities.append(rbm.hidden_mean(x).mean().item())
    assert activities[1] < 0.15 < activities[0]


@pytest.mark.parametrize("name", ["Bernoulli", "Gaussian", "Categorical"])
def test_centering_is_the_gradient_of_centered_covariances(name: str, generator: torch.Generator) -> None:
    """∇W' = -(⟨(s(v)-μ)(h-λ)ᵀ⟩⁺ - ⟨(s(v)-μ)(h-λ)ᵀ⟩⁻), written out over both phases."""
    machine, phases = with_gradient(name, generator)
    before = gradient_of(machine)
    flat = {
        sign: [machine.layer(layer).statistic(state[layer]).flatten(1) for layer in ("visible", "hidden")]
        for sign, state in (("+", phases.positive), ("-", phases.negative))
    }
    mu, lam = ((flat["+"][i].mean(0) + flat["-"][i].mean(0)) / 2 for i in (0, 1))
    covariances = {sign: (v - mu).t() @ (h - lam) / len(v) for sign, (v, h) in flat.items()}
    slope = -(covariances["+"] - covariances["-"])
    centering = hm.Centering()
    centering.before(machine, phases)
    assert torch.allclose(machine.weight.grad, slope, atol=1e-12)
    assert torch.allclose(centering.state_dict()["visible"], mu)
    b, c = machine.visible_bias.detach().flatten(), machine.hidden_bias.detach().flatten()
    b = b - 0.1 * (before["couplings.1.bias"].flatten() - slope @ lam)
    c = c - 0.1 * (before["couplings.2.bias"].flatten() - slope.t() @ mu)
    torch.optim.SGD(machine.parameters(), 0.1).step()
    assert not torch.allclose(machine.visible_bias.flatten(), b, atol=1e-6)  # the control: not before `after`
    centering.after(machine)
    assert torch.allclose(machine.visible_bias.flatten(), b, atol=1e-12)
    assert torch.allclose(machine.hidden_bias.flatten(), c, atol=1e-12)


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.RMSprop], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", ["Bernoulli", "Gaussian"])
def test_biases_follow_any_step_of_the_weights(name: str, optimizer: Any, generator: torch.Generator) -> None:
    """In centered parameters, `b̃ = b + Wλ` and `c̃ = c + Wᵀμ`, the step is the optimizer's own on `W, b̃, c̃`."""
    machine, phases = with_gradient(name, generator)
    centering = hm.Centering()
    centering.before(machine, phases)
    mu, lam = centering.means["visible"], centering.means["hidden"]

    def centered() -> list[torch.Tensor]:
        w = machine.weight.detach()
        return [machine.visible_bias.detach() + w @ lam, machine.hidden_bias.detach() + w.t() @ mu]

    start, biases = centered(), [machine.visible_bias.detach().clone(), machine.hidden_bias.detach().clone()]
    optimizer(machine.parameters(), 0.1).step()
    steps = [machine.visible_bias.detach() - biases[0], machine.hidden_bias.detach() - biases[1]]
    centering.after(machine)
    for now, old, step in zip(centered(), start, steps, strict=True):
        assert torch.allclose(now, old + step, atol=1e-12)


def test_weights_that_do_not_learn_are_left_alone(generator: torch.Generator) -> None:
    machine, phases = with_gradient("Bernoulli", generator)
    machine.couplings[0].weight.grad = None
    before = [p.detach().clone() for p in machine.parameters()]
    centering = hm.Centering()
    centering.before(machine, phases)
    assert machine.couplings[0].weight.grad is None
    centering.after(machine)
    assert all(torch.equal(p, old) for p, old in zip(machine.parameters(), before, strict=True))


def test_centering_remembers_its_means(generator: torch.Generator) -> None:
    machine, phases = with_gradient("Bernoulli", generator)
    centering = hm.Centering(decay=0.75)
    centering.before(machine, phases)
    first = centering.means["visible"]
    ones = {name: torch.ones_like(value) for name, value in phases.positive.items()}
    centering.before(machine, Phases(ones, ones))
    assert torch.allclose(centering.means["visible"], 0.75 * first + 0.25)


def test_parameter_average() -> None:
    rbm = make("Bernoulli")
    average = hm.ParameterAverage(decay=0.9, start=1)
    expected = None
    for step in range(4):
        with torch.no_grad():
            rbm.weight.add_(1.0)
        average.after(rbm)
        if step >= 1:
            now = rbm.weight.detach().clone()
            share = max(0.1, 9 / (step + 10))  # at update t = step of those it takes
            expected = now if expected is None else (1 - share) * expected + share * now
    last = rbm.weight.detach().clone()
    average.swap(rbm)
    assert torch.allclose(rbm.weight, expected)
    average.swap(rbm)
    assert torch.equal(rbm.weight, last)
    other = hm.ParameterAverage(decay=0.9)
    other.load_state_dict(average.state_dict())
    assert other.n_updates == 4
    average.after(rbm)
    assert not torch.equal(other.average["couplings.0.weight"], average.average["couplings.0.weight"])


@pytest.mark.parametrize("transform", [hm.Centering(), hm.Sparsity(0.1, 1.0)])
def test_transforms_that_need_phases_say_so(transform: hm.Centering | hm.Sparsity) -> None:
    with pytest.raises(TypeError, match=f"{type(transform).__name__} needs the two phases of a contrastive objective"):
        transform.before(make("Bernoulli"), None)


def test_the_average_does_not_hold_on_to_the_start() -> None:
    """Parameters that go from 0 to 1 and stay: a short run has their average near 1, and a long one forgets at `decay`.

    Without the warm-up an average of decay 0.9998 still stands at 0.96 of the start after 200 updates.
    """
    rbm = make("Bernoulli")
    average = hm.ParameterAverage(decay=0.9998)
    with torch.no_grad():
        rbm.weight.zero_()
        average.after(rbm)
        rbm.weight.fill_(1.0)
        for _ in range(200):
            average.after(rbm)
    left = 1 - average.average["couplings.0.weight"]
    assert bool((left < 1e-8).all())
    short = hm.ParameterAverage(decay=0.5)
    with torch.no_grad():
        for value in (0.0, *[1.0] * 30):
            rbm.weight.fill_(value)
            short.after(rbm)
    expected = math.prod(min(0.5, (t + 1) / (t + 10)) for t in range(2, 32))
    assert 1 - short.average["couplings.0.weight"][0, 0].item() == pytest.approx(expected, abs=1e-12)
