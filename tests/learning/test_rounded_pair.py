"""Contrastive divergence with weights of 16 bits against that of the same weights as floats."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import harmonium as hm
from harmonium import planes
from harmonium.learning.objectives import rounded_pair
from harmonium.learning.objectives.dense_pair import DensePair
from harmonium.planes import Planes
from harmonium.testing import tiny_rbm
from tests.learning.machines import draw_data
from tests.learning.test_dense_pair import gradients_of_updates, same_machine


@pytest.fixture(params=[True, False], ids=["bytes", "floats"])
def in_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Multiply as bytes or not, whatever the processor is fast at."""
    if request.param and not planes.is_exact():
        pytest.skip("products of bytes saturate with these instructions, and are not used")
    monkeypatch.setattr(planes, "INTEGERS", request.param)
    return request.param


def coarse(visible: str = "Bernoulli", hidden: str = "Bernoulli") -> hm.RBM:
    """A machine with one large weight, so that the grid of all is coarse: a 64th."""
    rbm = tiny_rbm(visible, hidden).float()
    with torch.no_grad():
        rbm.weight[0, 0] = 300.0
    return rbm


def refuse(*arguments: Any) -> None:
    raise AssertionError("a product of floats")


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("hidden", ["Bernoulli", "Spin", "Binomial", "Categorical"])
@pytest.mark.parametrize("visible", ["Bernoulli", "Spin", "Binomial", "Categorical"])
def test_updates_are_those_of_the_rounded_weights(
    visible: str, hidden: str, n_steps: int, in_bytes: bool, generator: torch.Generator
) -> None:
    rbm, plain, unrounded = (coarse(visible, hidden) for _ in range(3))
    with torch.no_grad():
        plain.weight.copy_(Planes.of(rbm.weight).weight())
    x = draw_data(rbm, 6, generator)
    kept = rbm.weight.clone()
    found = gradients_of_updates(rbm, hm.CD(n_steps, rounded=True), x)
    assert torch.equal(rbm.weight, kept)  # what is learned stays as fine as it was
    exact, other = (gradients_of_updates(same_machine(m), hm.CD(n_steps), x) for m in (plain, unrounded))
    assert len(found) == len(exact)
    for ours, theirs in zip(found, exact, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    assert not all(torch.allclose(a, b, rtol=1e-4, atol=1e-4) for a, b in zip(found, other, strict=True))


def test_all_products_are_of_bytes(monkeypatch: pytest.MonkeyPatch, generator: torch.Generator) -> None:
    if not planes.is_exact():
        pytest.skip("products of bytes saturate with these instructions, and are not used")
    monkeypatch.setattr(planes, "INTEGERS", True)
    monkeypatch.setattr(rounded_pair, "product", refuse)
    monkeypatch.setattr(DensePair, "add_contrast", refuse)
    rbm = coarse()
    x = draw_data(rbm, 6, generator)
    hm.CD(rounded=True).accumulate_grad(rbm, x, generator=generator)
    rbm.zero_grad()
    with pytest.raises(AssertionError, match="a product of floats"):  # halves are no whole numbers
        hm.CD(rounded=True).accumulate_grad(rbm, x / 2, generator=generator)


def test_weights_that_are_not_finite_stay_seen(in_bytes: bool, generator: torch.Generator) -> None:
    for value in (torch.nan, torch.inf):
        rbm = coarse()
        with torch.no_grad():
            rbm.weight[1, 1] = value
        hm.CD(rounded=True).accumulate_grad(rbm, torch.ones(3, rbm.visible.shape[0]), generator=generator)
        assert rbm.weight.grad is not None and not rbm.weight.grad.isfinite().all()


def learned(rounded: bool, data: Tensor) -> float:
    generator = torch.Generator().manual_seed(0)
    rbm = hm.RBM(hm.Bernoulli(data.shape[1]), hm.Bernoulli(8), generator=generator)
    options = {"epochs": 150, "batch_size": len(data), "monitors": [], "generator": generator}
    optimizer = torch.optim.SGD(rbm.parameters(), 1.0)
    hm.fit(rbm, data, hm.CD(rounded=rounded), optimizer=optimizer, **options)  # type: ignore[arg-type]
    return float(hm.log_likelihood(rbm, data).value.mean())


def test_it_learns_as_well(in_bytes: bool) -> None:
    rows = (torch.arange(64).unsqueeze(1) // torch.tensor([1, 2, 4, 1, 2, 4, 1, 2]) % 2).float()  # 3 bits, repeated
    fine, rounded = learned(False, rows), learned(True, rows)
    assert fine > -4.0  # units on their own: -5.5; the rows themselves: -2.1
    assert rounded > -4.0


def test_what_cannot_be_rounded_is_said(generator: torch.Generator) -> None:
    small = tiny_rbm("Bernoulli", "Bernoulli")
    gaussian = tiny_rbm("Gaussian", "Bernoulli").float()
    for rbm, weight in ((small, None), (gaussian, None), (coarse(), torch.ones(6)), (same_machine(coarse()), None)):
        x = draw_data(rbm, 6, generator)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="rounded=True"):
            hm.CD(rounded=True).accumulate_grad(rbm, x, weight=weight, generator=generator)
    with pytest.raises(ValueError, match="rounded=True"):
        hm.CD(rounded=True).loss(coarse(), draw_data(coarse(), 6, generator), generator=generator)
    with pytest.raises(ValueError, match="without a `sampler`"):
        hm.CD(rounded=True, sampler=hm.Gibbs())
    assert not hm.CD(rounded=True).divides(coarse())
