"""The straight line of learning against the general path: the same numbers from the same random words."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
import torch

import harmonium as hm
from harmonium.learning.objectives import Contrastive
from harmonium.learning.objectives.conv_pair import ConvPair
from harmonium.learning.objectives.dense_pair import DensePair
from harmonium.testing import tiny_rbm
from harmonium.testing.machines import TINY_UNITS
from tests.learning.machines import draw_data, gradient_of

OBJECTIVES = {
    "CD-1": lambda: hm.CD(),
    "CD-3": lambda: hm.CD(n_steps=3),
    "PCD": lambda: hm.PCD(n_chains=7, n_steps=2),
}
PAIRS = [(kind, "Bernoulli") for kind in TINY_UNITS] + [
    ("Bernoulli", kind) for kind in TINY_UNITS if kind != "Bernoulli"
]


def same_machine(rbm: hm.RBM) -> hm.BoltzmannMachine:
    """The same units and couplings without the name of RBM: what the straight line does not know."""
    return hm.BoltzmannMachine({"visible": rbm.visible, "hidden": rbm.hidden}, rbm.terms)


def gradients_of_updates(machine: hm.BoltzmannMachine, objective: Contrastive, x: torch.Tensor) -> list[torch.Tensor]:
    """The gradients of three updates in a row, and where the phases are."""
    generator = torch.Generator().manual_seed(3)
    found: list[torch.Tensor] = []
    for _ in range(3):
        machine.zero_grad(set_to_none=True)
        phases = objective.accumulate_grad(machine, x, generator=generator)
        found += [p.grad.clone() for p in machine.parameters() if p.grad is not None]
        found += [*phases.positive.values(), *phases.negative.values()]
    return found


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_straight_line_has_the_numbers_of_the_machine(
    visible: str, hidden: str, objective: str, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    rbm = tiny_rbm(visible, hidden)
    x = draw_data(rbm, 6, generator)
    general = gradients_of_updates(same_machine(rbm), OBJECTIVES[objective](), x)
    made = OBJECTIVES[objective]()
    if isinstance(made, hm.PCD):  # its first update makes the chains, by the general path
        straight = gradients_of_updates(rbm, made, x)
    else:
        with monkeypatch.context() as patch:
            patch.delattr(hm.BoltzmannMachine, "add_gradient")
            straight = gradients_of_updates(rbm, made, x)
    assert len(straight) == len(general)
    for ours, theirs in zip(straight, general, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-12, atol=1e-12)


FILTERS = {
    "halving": ((2, 6, 6), (3, 3, 3), {"kernel": 4, "stride": 2, "padding": 1}),
    "many channels": ((9, 5, 4), (2, 3, 2), {"kernel": 3}),
}


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("hidden", [hm.Bernoulli, hm.Spin, functools.partial(hm.Multinary, levels=4)])
def test_straight_line_of_a_convolution_has_the_numbers_of_the_machine(
    hidden: Callable[..., hm.units.Units], filters: str, objective: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator().manual_seed(1)
    lower, upper, sizes = FILTERS[filters]
    rbm = hm.RBM(hm.Bernoulli(*lower), hidden(*upper), hm.Conv2d(lower[0], upper[0], **sizes)).double()
    with torch.no_grad():
        for parameter in rbm.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
    x = torch.rand(6, *lower, generator=generator, dtype=torch.float64).round()
    assert ConvPair.of(rbm, {"visible": x}) is not None
    general = gradients_of_updates(same_machine(rbm), OBJECTIVES[objective](), x)
    straight = gradients_of_updates(rbm, OBJECTIVES[objective](), x)
    assert len(straight) == len(general)
    for ours, theirs in zip(straight, general, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-11, atol=1e-11)
    monkeypatch.setattr(ConvPair, "begin", lambda self, positive: None)  # the control
    wrong = gradients_of_updates(rbm, OBJECTIVES[objective](), x)
    assert not all(torch.allclose(a, b, rtol=1e-3) for a, b in zip(wrong, general, strict=True))


def test_a_convolution_under_units_that_learn_is_left_to_the_machine() -> None:
    filters = hm.Conv2d(1, 2, kernel=4)
    rbm = hm.RBM(hm.Gaussian(1, 6, 6), hm.Bernoulli(2, 3, 3), filters)
    assert ConvPair.of(rbm, {"visible": torch.zeros(2, 1, 6, 6)}) is None


def test_a_wrong_contrast_is_seen(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: phases in the wrong order fail the same comparison."""
    rbm = tiny_rbm("Gaussian", "Bernoulli")
    x = draw_data(rbm, 6, generator)
    right = DensePair.add_contrast
    monkeypatch.setattr(DensePair, "add_contrast", lambda self, positive, negative: right(self, negative, positive))
    ours, theirs = (gradients_of_updates(machine, hm.CD(), x) for machine in (rbm, same_machine(rbm)))
    assert not any(torch.allclose(a, b, rtol=1e-3) for a, b in zip(ours[:4], theirs[:4], strict=True))


def test_the_straight_line_leaves_to_the_machine_what_it_does_not_know(generator: torch.Generator) -> None:
    rbm = tiny_rbm("Bernoulli", "Bernoulli")
    x = draw_data(rbm, 6, generator)
    batch = {"visible": x}
    assert DensePair.of(rbm, batch) is not None
    assert DensePair.of(same_machine(rbm), batch) is None
    assert DensePair.of(rbm, {"visible": x.expand(2, *x.shape)}) is None
    assert DensePair.of(rbm, rbm.initial(6, generator=generator)) is None, "both layers are observed"
    rbm.accumulate_grad(x)
    before = gradient_of(rbm)
    assert DensePair.of(rbm, batch) is None, "gradients that are there must be added to"
    words = [torch.Generator().manual_seed(1) for _ in range(2)]
    hm.CD().accumulate_grad(rbm, x, generator=words[0])
    after = gradient_of(rbm)
    rbm.zero_grad(set_to_none=True)
    hm.CD().accumulate_grad(rbm, x, generator=words[1])
    alone = gradient_of(rbm)
    for name in before:
        assert torch.allclose(after[name], before[name] + alone[name], atol=1e-12)
    rbm.zero_grad(set_to_none=True)
    rbm.weight.requires_grad_(False)
    assert DensePair.of(rbm, batch) is None
    hm.CD().accumulate_grad(rbm, x, generator=generator)
    assert rbm.weight.grad is None
    filters = hm.RBM(hm.Bernoulli(1, 6, 6), hm.Bernoulli(2, 3, 3), hm.Conv2d(1, 2, kernel=4))
    assert DensePair.of(filters, {"visible": torch.zeros(2, 1, 6, 6)}) is None
