"""Contrastive objectives: the closed form against autograd, a hand-written update, and the contract."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

import harmonium as hm
from harmonium.learning.objectives import Contrastive, Phases
from harmonium.testing import ContractError, tiny_boltzmann_machine, tiny_rbm
from harmonium.testing.objectives import ALL_CONTRASTS, check_exact_gradient, check_zero_gradient
from tests.learning.machines import MACHINES, draw_data, gradient_of, make

OBJECTIVES: dict[str, Callable[[], Contrastive]] = {
    "CD-1": hm.CD,
    "CD-3": lambda: hm.CD(n_steps=3),
    "PCD": lambda: hm.PCD(n_chains=7, n_steps=2),
    "TemperedPCD": lambda: hm.TemperedPCD(n_chains=6, betas=(0.0, 0.5, 1.0)),
    "CD by a sampler": lambda: hm.CD(n_steps=2, sampler=hm.Gibbs()),
}


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", MACHINES)
def test_closed_form_equals_autograd_of_the_loss(name: str, objective: str, generator: torch.Generator) -> None:
    """The same random words in both: the gradients are equal to rounding, over two updates of the same chains."""
    machine = make(name)
    x = draw_data(machine, 6, generator)
    closed, loss = (OBJECTIVES[objective]() for _ in range(2))
    for seed in (1, 2):
        machine.zero_grad(set_to_none=True)
        phases = closed.accumulate_grad(machine, x, generator=torch.Generator().manual_seed(seed))
        found = gradient_of(machine)
        machine.zero_grad(set_to_none=True)
        loss.loss(machine, x, generator=torch.Generator().manual_seed(seed)).backward()
        expected = gradient_of(machine)
        assert found.keys() == expected.keys()
        for key in expected:
            assert torch.allclose(found[key], expected[key], rtol=0, atol=1e-10), key
        assert isinstance(phases, Phases)
        assert torch.equal(phases.positive[machine.data_layer], x)


def test_hand_written_cd_1(generator: torch.Generator) -> None:
    """Hinton's recipe with the same draws: h from σ(c + vW), v' from σ(b + Wh), then the two outer products."""
    rbm = make("Bernoulli")
    v = draw_data(rbm, 8, generator)
    W, b, c = rbm.weight.detach(), rbm.visible_bias.detach(), rbm.hidden_bias.detach()
    words = torch.Generator().manual_seed(5)
    up = (c + v @ W).sigmoid()
    h = rbm.hidden.sample(c + v @ W, generator=words)
    v_minus = rbm.visible.sample(b + h @ W.t(), generator=words)
    down = (c + v_minus @ W).sigmoid()
    hm.CD().accumulate_grad(rbm, v, generator=torch.Generator().manual_seed(5))
    assert torch.allclose(rbm.weight.grad, -(v.t() @ up - v_minus.t() @ down) / 8, atol=1e-12)
    assert torch.allclose(rbm.visible_bias.grad, -(v - v_minus).mean(0), atol=1e-12)
    assert torch.allclose(rbm.hidden_bias.grad, -(up - down).mean(0), atol=1e-12)


def test_gradients_are_added(generator: torch.Generator) -> None:
    rbm = make("Gaussian")
    x = draw_data(rbm, 4, generator)
    hm.CD().accumulate_grad(rbm, x, generator=torch.Generator().manual_seed(0))
    once = gradient_of(rbm)
    hm.CD().accumulate_grad(rbm, x, generator=torch.Generator().manual_seed(0))
    for key, value in gradient_of(rbm).items():
        assert torch.allclose(value, 2 * once[key])


@pytest.mark.parametrize(
    "factory",
    [lambda sampler: hm.CD(sampler=sampler), lambda sampler: hm.PCD(n_chains=3, sampler=sampler)],
    ids=["CD", "PCD"],
)
@pytest.mark.parametrize("pair", ["Bernoulli-Spin", "Spin-Gaussian", "Categorical-Poisson", "Multinary-NReLU", "x-x"])
def test_exact_negatives_give_the_exact_gradient(
    factory: Callable[[hm.samplers.Sampler], Contrastive], pair: str
) -> None:
    visible, hidden = pair.split("-")
    check_exact_gradient(factory, tiny_boltzmann_machine() if visible == "x" else tiny_rbm(visible, hidden))


@pytest.mark.parametrize("index", range(len(ALL_CONTRASTS)))
def test_the_models_own_law_has_no_gradient(index: int, generator: torch.Generator) -> None:
    check_zero_gradient(ALL_CONTRASTS[index], tiny_rbm("Bernoulli", "Spin"), n_rounds=100, generator=generator)


@pytest.mark.parametrize("pair", ["Gaussian-Bernoulli", "Categorical-Gaussian", "Mixed-Bernoulli"])
def test_the_models_own_law_has_no_gradient_for_other_units(pair: str, generator: torch.Generator) -> None:
    check_zero_gradient(hm.CD, tiny_rbm(*pair.split("-")), n_rounds=100, generator=generator)


@dataclass
class Lazy(hm.CD):
    """A wrong objective: its negatives are the means of the visible units, not draws."""

    def _negative_phase(self, model, positive, share, generator):  # type: ignore[no-untyped-def]
        hidden = model.layer("hidden").mean(positive.fields["hidden"])
        return model.accumulate_grad(model.mean("visible", {"hidden": hidden}), -share).state


class Flipped(hm.CD):
    """A wrong objective: the two phases count the same way."""

    def accumulate_grad(self, model, batch, *, weight=None, index=None, generator=None):  # type: ignore[no-untyped-def]
        model.accumulate_grad(batch, 2.0 / len(batch["visible"]))
        return super().accumulate_grad(model, batch, weight=weight, index=index, generator=generator)


def test_wrong_objectives_fail(generator: torch.Generator) -> None:
    rbm = tiny_rbm("Bernoulli", "Spin")
    for wrong in (Lazy, Flipped):
        with pytest.raises(ContractError, match="standard errors from zero"):
            check_zero_gradient(wrong, rbm, n_rounds=100, generator=generator)
    with pytest.raises(ContractError, match="the gradient with exact negatives"):
        check_exact_gradient(lambda sampler: Flipped(sampler=sampler), rbm)


@pytest.mark.parametrize("objective", [hm.CD(), hm.PCD(n_chains=5)], ids=["CD", "PCD"])
def test_integer_weights_are_repeated_rows(objective: Contrastive, generator: torch.Generator) -> None:
    """Exactly in the positive phase; the negative phase is compared on average over many draws."""
    rbm = make("Bernoulli")
    x = draw_data(rbm, 3, generator)
    weight = torch.tensor([1.0, 3.0, 2.0]).double()
    repeated = x.repeat_interleave(weight.long(), dim=0)
    positive = []
    for rows, share in ((x, weight / weight.sum()), (repeated, 1 / 6)):
        rbm.zero_grad(set_to_none=True)
        rbm.accumulate_grad(rows, share)
        positive.append(gradient_of(rbm))
    for key in positive[0]:
        assert torch.allclose(positive[0][key], positive[1][key], atol=1e-12)
    means, errors = [], []
    for rows, w in ((x, weight), (repeated, None)):
        found = []
        for _ in range(600):
            rbm.zero_grad(set_to_none=True)
            copy.deepcopy(objective).accumulate_grad(rbm, rows, weight=w, generator=generator)
            found.append(rbm.weight.grad.flatten().clone())
        draws = torch.stack(found)
        means.append(draws.mean(0))
        errors.append(draws.var(0) / len(draws))
    score = (means[0] - means[1]) / (errors[0] + errors[1]).sqrt()
    assert score.abs().max() < 5.5  # 15 entries: false alarms under 1e-6


def test_a_weight_of_zero_leaves_a_row_out(generator: torch.Generator) -> None:
    rbm = make("Gaussian")
    x = draw_data(rbm, 4, generator)
    found: list[Tensor] = []
    for scale in (1.0, 100.0):
        rows = torch.cat([x[:3], scale * x[3:]])
        rbm.zero_grad(set_to_none=True)
        weight = torch.tensor([1.0, 1.0, 1.0, 0.0]).double()
        hm.PCD(n_chains=5).accumulate_grad(rbm, rows, weight=weight, generator=torch.Generator().manual_seed(1))
        found.append(rbm.weight.grad.clone())
    assert torch.equal(*found)


def test_persistent_chains_persist(generator: torch.Generator) -> None:
    rbm = make("Bernoulli")
    x = draw_data(rbm, 4, generator)
    pcd = hm.PCD(n_chains=9)
    assert pcd.state_dict() == {}
    pcd.accumulate_grad(rbm, x, generator=generator)
    chains = pcd.state_dict()
    assert {name: tuple(value.shape) for name, value in chains.items()} == {"visible": (9, 5), "hidden": (9, 3)}
    again = hm.PCD(n_chains=9)
    again.load_state_dict(chains)
    seeds = [torch.Generator().manual_seed(2) for _ in range(2)]
    rows = [
        objective.draw_negatives(rbm, {"visible": x}, generator=seed)["visible"]
        for objective, seed in zip((pcd, again), seeds, strict=True)
    ]
    assert torch.equal(*rows)
    fresh = hm.PCD(n_chains=9).draw_negatives(rbm, {"visible": x}, generator=torch.Generator().manual_seed(2))
    assert not torch.equal(fresh["visible"], rows[0])


def test_tempered_chains_have_a_rung_for_each_temperature(generator: torch.Generator) -> None:
    rbm = make("Bernoulli")
    objective = hm.TemperedPCD(n_chains=9, betas=(0.0, 0.4, 1.0))
    phases = objective.accumulate_grad(rbm, draw_data(rbm, 4, generator), generator=generator)
    assert objective.state_dict()["visible"].shape == (3, 9, 5)
    assert phases.negative["visible"].shape == (9, 5)


@pytest.mark.parametrize("make_objective", [lambda: hm.CD(0), lambda: hm.PCD(n_steps=0), lambda: hm.PCD(n_chains=0)])
def test_bad_counts(make_objective: Callable[[], Contrastive]) -> None:
    with pytest.raises(ValueError, match="must be at least 1. Got 0"):
        make_objective()


def test_the_loss_is_the_difference_of_free_energies(generator: torch.Generator) -> None:
    rbm = make("Categorical")
    x = draw_data(rbm, 5, generator)
    objective = hm.CD()
    loss = objective.loss(rbm, x, generator=torch.Generator().manual_seed(3))
    negative = objective.draw_negatives(rbm, {"visible": x}, generator=torch.Generator().manual_seed(3))
    assert list(negative) == ["visible"]
    assert loss.item() == pytest.approx((rbm.free_energy(x).mean() - rbm.free_energy(negative).mean()).item())
