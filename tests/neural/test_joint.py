"""L = L_clf + L_gen: its gradient against quadrature, its parts, its chains."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import harmonium as hm
from harmonium.learning.monitors import Guard, JointCurves
from harmonium.learning.objectives import ReplayBuffer
from harmonium.learning.objectives.joint_likelihood import saturation
from harmonium.learning.state import restore, snapshot
from harmonium.learning.training import Training
from harmonium.types import EnergyModel
from tests.neural.quadrature import draw_from, line


@dataclass(frozen=True)
class FromGrid(hm.samplers.Sampler):
    """A sampler that draws the law of the model exactly, from a grid; or, wrongly, leaves the chains where they are."""

    right: bool = True

    def init(self, model: EnergyModel, x: Tensor, *, generator: torch.Generator | None = None) -> hm.State:
        return {"x": x}

    def step(
        self, model: EnergyModel, state: hm.State, *, generator: torch.Generator | None = None
    ) -> tuple[hm.State, dict[str, Tensor]]:
        grid, _ = line(-6, 6, 2001)
        assert generator is not None
        return ({"x": draw_from(model, grid, len(state["x"]), generator=generator)} if self.right else state), {}


def exact_gradient(model: hm.JEM, x: Tensor) -> list[Tensor]:
    """Return the gradient of `mean F(x) + log ∫ e^{-F}`, the negative log-likelihood, by quadrature."""
    grid, _ = line(-6, 6, 2001)
    loss = model.free_energy(x).mean() + (-model.free_energy(grid)).logsumexp(0)
    return list(torch.autograd.grad(loss, list(model.parameters())))


@pytest.mark.parametrize("right", [True, False])
def test_the_gradient_of_l_gen_is_that_of_the_likelihood(right: bool, generator: torch.Generator) -> None:
    model = hm.JEM(hm.MLP(1, 3, hidden=(8,), generator=generator), base_std=1.0).double()
    n_batches = 40
    x = torch.randn(200, 1, generator=generator, dtype=torch.float64) * 0.5 + 1.0
    objective = hm.learning.objectives.JointLikelihood(n_steps=1, sampler=FromGrid(right), classification_weight=0.0)
    draws = []
    for _ in range(n_batches):
        parts = torch.autograd.grad(objective.loss(model, x, generator=generator), list(model.parameters()))
        draws.append(torch.cat([p.flatten() for p in parts]))
    found = torch.stack(draws)
    exact = torch.cat([p.flatten() for p in exact_gradient(model, x)])
    error = found.std(0) / n_batches**0.5
    distance = ((found.mean(0) - exact) / error.clamp_min(1e-12)).abs()[error > 1e-12]
    assert (distance.max() < 5) == right


def test_the_gradient_with_langevin_chains_has_the_right_direction(generator: torch.Generator) -> None:
    model = hm.JEM(hm.MLP(1, 3, hidden=(8,), generator=generator), base_std=1.0).double()
    x = torch.randn(2000, 1, generator=generator, dtype=torch.float64) * 0.5 + 1.0
    objective = hm.learning.objectives.JointLikelihood(
        n_steps=150, sampler=hm.Langevin(0.05), classification_weight=0.0
    )
    parts = torch.autograd.grad(objective.loss(model, x, generator=generator), list(model.parameters()))
    found, exact = (torch.cat([p.flatten() for p in g]) for g in (parts, exact_gradient(model, x)))
    assert torch.cosine_similarity(found, exact, dim=0) > 0.99
    assert (found - exact).norm() < 0.15 * exact.norm()


@pytest.fixture
def jem(generator: torch.Generator) -> hm.JEM:
    return hm.JEM(hm.MLP(4, 3, hidden=(16,), generator=generator))


def test_the_parts_add_up_with_their_weights(jem: hm.JEM, generator: torch.Generator) -> None:
    x, y = torch.rand(12, 4, generator=generator), torch.arange(12) % 3
    objective = hm.learning.objectives.JointLikelihood(
        n_steps=3, classification_weight=2.0, generation_weight=0.5, energy_penalty=0.1
    )
    seeds = [torch.Generator().manual_seed(3) for _ in range(2)]
    loss = objective.loss(jem, {"x": x, "y": y}, generator=seeds[0])
    phases = objective.accumulate_grad(jem, {"x": x, "y": y}, generator=seeds[1])
    assert phases is not None and torch.equal(phases.positive["x"], x)
    negatives = phases.negative["x"]
    assert negatives.shape == x.shape and not negatives.requires_grad
    free, free_negative = jem.free_energy(x), jem.free_energy(negatives)
    expected = 2.0 * cross_entropy(jem.class_logits(x), y) + 0.5 * (free.mean() - free_negative.mean())
    expected = expected + 0.1 * (free.square().mean() + free_negative.square().mean())
    torch.testing.assert_close(loss, expected)
    for parameter, slope in zip(jem.parameters(), torch.autograd.grad(expected, list(jem.parameters())), strict=True):
        torch.testing.assert_close(parameter.grad, slope)
    assert objective.metrics["classification_loss"] == pytest.approx(cross_entropy(jem.class_logits(x), y).item())
    assert objective.metrics["generation_loss"] == pytest.approx((free.mean() - free_negative.mean()).item(), abs=1e-6)


def test_rows_without_a_label_take_part_in_l_gen_only(jem: hm.JEM, generator: torch.Generator) -> None:
    x, y = torch.rand(12, 4, generator=generator), torch.tensor([0, 1, 2, *[-1] * 9])
    only = hm.learning.objectives.JointLikelihood(generation_weight=0.0)
    torch.testing.assert_close(only.loss(jem, {"x": x, "y": y}), cross_entropy(jem.class_logits(x[:3]), y[:3]))
    objective = hm.learning.objectives.JointLikelihood(n_steps=1)
    objective.loss(jem, {"x": x, "y": torch.full((12,), -1)}, generator=generator)
    assert "classification_loss" not in objective.metrics
    assert only.accumulate_grad(jem, {"x": x, "y": y}) is None  # no chains, nothing to look at
    assert objective.metrics["free_energy"] == pytest.approx(jem.free_energy(x).mean().item())


def test_few_labeled_samples_join_every_update(jem: hm.JEM, generator: torch.Generator) -> None:
    known = torch.rand(1, 4, generator=generator), torch.tensor([2])
    objective = hm.learning.objectives.JointLikelihood(generation_weight=0.0, labeled=known, n_labeled=5)
    loss = objective.loss(jem, torch.rand(7, 4, generator=generator), generator=generator)
    torch.testing.assert_close(loss, cross_entropy(jem.class_logits(known[0]), known[1]))


def test_an_energy_without_classes_learns_from_bare_data(generator: torch.Generator) -> None:
    model = hm.NeuralEBM(hm.MLP(2, generator=generator))
    objective = hm.learning.objectives.JointLikelihood(n_steps=2)
    objective.loss(model, torch.zeros(5, 2), generator=generator).backward()
    assert set(objective.metrics) == {"generation_loss", "free_energy"}


class Probe(nn.Module):
    """A network that notes in which mode it is asked, and fails when told."""

    shape = (2,)

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 3)
        self.seen: list[tuple[bool, bool]] = []
        self.fail_after = 10**9

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append((self.training, self.layer.weight.requires_grad))
        if len(self.seen) > self.fail_after:
            raise RuntimeError("the network broke")
        return self.layer(x)


def test_chains_run_in_evaluation_mode_with_frozen_parameters(generator: torch.Generator) -> None:
    net = Probe()
    jem = hm.JEM(net)
    objective = hm.learning.objectives.JointLikelihood(n_steps=4)
    objective.loss(jem, {"x": torch.zeros(3, 2), "y": torch.zeros(3, dtype=torch.int64)}, generator=generator)
    assert net.seen == [(True, True)] + 4 * [(False, False)] + [(True, True)]
    assert net.layer.weight.grad is None
    net.fail_after = len(net.seen) + 2
    with pytest.raises(RuntimeError, match="broke"):
        objective.loss(jem, torch.zeros(3, 2), generator=generator)
    assert net.training and net.layer.weight.requires_grad


def test_input_noise_and_box(jem: hm.JEM, generator: torch.Generator) -> None:
    objective = hm.learning.objectives.JointLikelihood(
        n_steps=3, sampler=hm.Langevin(1.0, noise=5.0), box=(-1.0, 1.0), input_noise=0.1
    )
    state = generator.get_state()
    loss = objective.loss(jem, torch.zeros(40, 4), generator=generator)
    generator.set_state(state)
    phases = objective.accumulate_grad(jem, torch.zeros(40, 4), generator=generator)
    assert phases is not None and phases.negative["x"].abs().max() == 1
    assert objective.metrics["saturation"] == saturation(phases.negative["x"], (-1.0, 1.0))
    generator.set_state(state)
    without = hm.learning.objectives.JointLikelihood(n_steps=3, sampler=objective.sampler, box=(-1.0, 1.0))
    assert loss != without.loss(jem, torch.zeros(40, 4), generator=generator)


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="`n_steps` must be at least 1"):
        hm.learning.objectives.JointLikelihood(n_steps=0)
    with pytest.raises(ValueError, match="must not be negative"):
        hm.learning.objectives.JointLikelihood(generation_weight=-1.0)


def toy_run(epochs: int) -> tuple[Training, hm.JEM]:
    generator = torch.Generator().manual_seed(5)
    jem = hm.JEM(hm.MLP(2, 2, hidden=(8,), generator=generator))
    x = torch.randn(60, 2, generator=generator)
    objective = hm.learning.objectives.JointLikelihood(n_steps=2, buffer=ReplayBuffer(40, n_classes=2), input_noise=0.1)
    training = Training(
        jem,
        (x, (x[:, 0] > 0).long()),
        objective,
        optimizer=torch.optim.Adam(jem.parameters(), 0.01),
        epochs=epochs,
        batch_size=20,
        monitors=[JointCurves((x, (x[:, 0] > 0).long())), Guard()],
        generator=generator,
    )
    return training, jem


def test_a_resumed_run_is_the_same_run() -> None:
    whole, jem = toy_run(4)
    whole.run()
    first, _ = toy_run(2)
    first.run()
    tensors, plain = snapshot(first)
    second, again = toy_run(4)
    restore(second, {name: value.clone() for name, value in tensors.items()}, plain)
    second.run()
    for a, b in zip(jem.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
    assert whole.history.last == second.history.last
    assert {"loss", "validation_loss", "validation_generation_loss", "validation_accuracy", "rollbacks"} <= set(
        whole.history.last
    )
