"""The RBM with a label: its energy, p(y | x) and the gradients of its objectives against brute force."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

import harmonium as hm
from harmonium.learning.objectives import Hybrid
from harmonium.testing import tiny_labeled_rbm
from harmonium.testing.objectives import gradients
from harmonium.units import Gaussian

X = torch.tensor(list(itertools.product([0.0, 1.0], repeat=3))).double()
H = torch.tensor(list(itertools.product([0.0, 1.0], repeat=2))).double()


def joint(machine: hm.ClassRBM) -> Tensor:
    """Return `Σ_h e^{-E(x, y, h)}` of every x and y from the formula of the paper, `(8, 3)`."""
    w, u, b, d, c = (p.detach() for p in machine.parameters())
    rows = [[sum(torch.exp(x @ w @ h + u[y] @ h + b @ x + c @ h + d[0, y]) for h in H) for y in range(3)] for x in X]
    return torch.tensor(rows, dtype=torch.float64)


def test_energy_and_class_probabilities_are_those_of_the_formula() -> None:
    machine = tiny_labeled_rbm()
    weights = joint(machine)
    for y in range(3):
        energies = machine.energy({"visible": X, "label": torch.full((8,), y)})
        torch.testing.assert_close(energies, -weights[:, y].log(), rtol=0, atol=1e-12)
    torch.testing.assert_close(machine.free_energy(X), -weights.sum(1).log(), rtol=0, atol=1e-12)
    expected = weights / weights.sum(1, keepdim=True)
    torch.testing.assert_close(machine.predict_proba(X), expected, rtol=0, atol=1e-10)
    assert torch.equal(machine.classify(X), expected.argmax(1))
    assert hm.exact_log_z(machine).value == pytest.approx(weights.sum().log().item(), abs=1e-10)
    nats = hm.log_likelihood(machine, {"visible": X, "label": torch.full((8,), 1)})
    torch.testing.assert_close(nats.value, (weights[:, 1] / weights.sum()).log(), rtol=0, atol=1e-10)


@pytest.mark.parametrize("weight", [0.0, 0.2, 1.0])
def test_the_closed_form_is_the_gradient_of_the_exact_loss(weight: float) -> None:
    machine, y = tiny_labeled_rbm(), torch.tensor([0, 2, 1, -1, 2, -1, 0, 1])
    weights = joint(machine)
    share, known = weights / weights.sum(), y >= 0
    both = share[known, y[known]].log().sum() + share[~known].sum(1).log().sum()
    given = (weights[known, y[known]] / weights[known].sum(1)).log().mean()
    exact = -(weight * both / 8 + (1 - weight) * given).item()

    def loss() -> Tensor:
        known_rows = {"visible": X[known], "label": y[known]}
        total = machine.energy(known_rows).sum() + machine.energy({"visible": X[~known]}).sum()
        log_z = (-machine.energy({"visible": X})).logsumexp(0)
        classified = (machine.energy(known_rows) - machine.energy({"visible": X[known]})).mean()
        return weight * (total / 8 + log_z) + (1 - weight) * classified

    assert loss().item() == pytest.approx(exact, abs=1e-12)
    loss().backward()
    wanted = gradients(machine)
    machine.zero_grad()
    objective = Hybrid(weight, generative=ExactNegatives())
    objective.accumulate_grad(machine, {"visible": X, "label": y})
    torch.testing.assert_close(gradients(machine), wanted, rtol=0, atol=1e-10)
    if weight < 1:
        assert objective.measured()["classification_loss"] == pytest.approx(-given.item(), abs=1e-12)


class ExactNegatives(hm.CD):
    """The negative phase is the law of the model itself."""

    def _negative_phase(self, model, positive, share, generator):  # type: ignore[no-untyped-def]
        weights = (-model.energy({"visible": X})).softmax(0)
        return model.accumulate_grad({"visible": X}, -weights).state


def test_a_wrong_label_changes_the_gradient() -> None:
    machine, found = tiny_labeled_rbm(), []
    for y in (0, 1):
        machine.zero_grad()
        Hybrid(0.0).accumulate_grad(machine, {"visible": X, "label": torch.full((8,), y)})
        found.append(gradients(machine))
    assert (found[0] - found[1]).abs().max() > 0.01


def test_a_classifier_without_density_can_be_centered() -> None:
    """Its phases are the label and the guess, hidden units at their means; rows without a label have no contrast."""
    machine, y = tiny_labeled_rbm(), torch.tensor([0, 2, 1, 0, 2, 1, 0, 1])
    phases = Hybrid(0.0).accumulate_grad(machine, {"visible": X, "label": y})
    assert phases is not None
    for part, label in ((phases.positive, y), (phases.negative, machine.classify(X))):
        state = machine.state({"visible": X, "label": label})
        torch.testing.assert_close(part, state | {"hidden": machine.mean("hidden", state)})
    unknown = Hybrid(0.0).accumulate_grad(machine, {"visible": X, "label": torch.full((8,), -1)})
    assert unknown is not None
    torch.testing.assert_close(unknown.positive, unknown.negative)
    optimizer = torch.optim.SGD(machine.parameters(), 0.1)
    hm.fit(machine, (X, y), Hybrid(0.0), optimizer=optimizer, epochs=1, transforms=[hm.Centering()])


def test_gradients_that_are_there_stay() -> None:
    machine = tiny_labeled_rbm()
    batch = {"visible": X, "label": torch.zeros(8, dtype=torch.int64)}
    Hybrid(0.5).accumulate_grad(machine, batch, generator=torch.Generator().manual_seed(0))
    once = gradients(machine)
    Hybrid(0.5).accumulate_grad(machine, batch, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(gradients(machine), 2 * once, rtol=0, atol=1e-12)


def test_units_that_learn_take_the_gradient_of_autograd() -> None:
    machine = hm.ClassRBM(Gaussian(2), hm.Bernoulli(3), 2, generator=torch.Generator().manual_seed(0)).double()
    x, y = torch.tensor([[0.3, -1.0], [1.2, 0.4]]).double(), torch.tensor([0, 1])
    Hybrid(0.0).loss(machine, {"visible": x, "label": y}).backward()
    wanted = gradients(machine)
    machine.zero_grad()
    Hybrid(0.0).accumulate_grad(machine, {"visible": x, "label": y})
    torch.testing.assert_close(gradients(machine), wanted, rtol=0, atol=1e-12)


def blobs(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return two classes of 16 binary units: one half of them is mostly on."""
    y = torch.arange(n) % 2
    on = torch.where(torch.arange(16) < 8, 0.8, 0.2)
    return torch.bernoulli(torch.where(y[:, None] == 0, on, 1 - on), generator=generator), y


def test_it_learns_from_a_tuple_and_draws_a_class() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = blobs(400, generator)
    machine = hm.ClassRBM(hm.Bernoulli(16), hm.Bernoulli(8), 2, generator=generator)
    hm.fit(machine, (x, y), Hybrid(0.3), epochs=40, generator=generator, monitors=[])
    test, truth = blobs(500, generator)
    assert (machine.classify(test) == truth).float().mean() > 0.9  # the best rule is right in 97 of 100
    drawn = hm.sample(machine, 200, n_steps=50, given={"label": torch.tensor(1)}, generator=generator)
    assert drawn[:, 8:].mean() - drawn[:, :8].mean() > 0.3


def test_fit_alone_makes_a_classifier() -> None:
    generator = torch.Generator().manual_seed(1)
    x, y = blobs(200, generator)
    machine = hm.ClassRBM(hm.Bernoulli(16), hm.Bernoulli(8), 2, generator=generator)
    hm.fit(machine, {"visible": x, "label": y}, epochs=30, generator=generator, monitors=[])
    assert (machine.classify(x) == y).float().mean() > 0.9


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    machine = tiny_labeled_rbm()
    machine.save(tmp_path / "class.safetensors")
    again = hm.load(tmp_path / "class.safetensors")
    assert torch.equal(again.predict_proba(X), machine.predict_proba(X))


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"`n_classes` must be at least 2. Got 1"):
        hm.ClassRBM(hm.Bernoulli(2), hm.Bernoulli(2), 1)
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]. Got 1.5"):
        Hybrid(1.5)
    rbm = hm.RBM(hm.Bernoulli(2), hm.Bernoulli(2))
    with pytest.raises(TypeError, match="needs a machine with a layer 'label'"):
        hm.fit(rbm, torch.zeros(4, 2), Hybrid())
    wide = hm.RBM(hm.Bernoulli(2), hm.Bernoulli(20))
    with pytest.raises(TypeError, match="more than 256"):
        Hybrid(layer="hidden").check(wide)
    with pytest.raises(ValueError, match="no weights of rows"):
        Hybrid().accumulate_grad(tiny_labeled_rbm(), X, weight=torch.ones(8))
    with pytest.raises(ValueError, match=r"must lie in 0..2"):
        tiny_labeled_rbm().energy({"visible": X, "label": torch.full((8,), 3)})
    assert math.isfinite(Hybrid(0.0).loss(tiny_labeled_rbm(), {"visible": X}).item())  # no label: nothing to learn


def test_rows_with_holes_have_no_class() -> None:
    """The largest of three probabilities of NaN would be the first class."""
    machine, holes = tiny_labeled_rbm(), X.clone()
    assert machine.predict_proba(holes).isfinite().all()
    holes[2, 1] = math.nan
    for asked in (machine.predict_proba, machine.classify):
        with pytest.raises(ValueError, match="`visible` must be finite"):
            asked(holes)
