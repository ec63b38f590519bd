"""Parallel tempering and the multistate estimate against closed forms and enumeration."""

from __future__ import annotations

import math
import sys

import pytest
import torch

import harmonium as hm
from harmonium.draws import draw_normal, draw_uniform
from harmonium.partition.ladders import Ladders
from harmonium.partition.mbar import jackknifed_mbar, mbar
from harmonium.partition.rungs import rungs_again
from harmonium.partition.tempering import ladder_doubts
from harmonium.testing import scatter
from harmonium.testing.contract import normal_quantile


def shifted_gaussians(a: float, n_betas: int, n: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Samples of `p_β ∝ e^{-x²/2 - βax}`, whose `log Z_β - log Z_0 = β²a²/2`: the U of each, and the β."""
    betas = torch.linspace(0, 1, n_betas, dtype=torch.float64)
    noise = draw_normal(torch.empty(n_betas, n, dtype=torch.float64), generator=generator)
    return a * (noise - betas[:, None] * a), betas


def test_mbar_on_gaussians(generator: torch.Generator) -> None:
    """The mean over 100 runs is right, and closer than the trapezium rule could be from so few rungs."""
    a, errors = 3.0, []
    for _ in range(100):
        slope, betas = shifted_gaussians(a, 4, 200, generator)
        errors.append(mbar(slope, betas)[-1].item() - a**2 / 2)
    found = torch.tensor(errors)
    assert abs(found.mean()) < normal_quantile(1e-6) * found.std() / 10 + 0.01
    assert found.std() < 0.2
    shifted = mbar(slope + 1.0, betas)[-1].item() - mbar(slope, betas)[-1].item()
    assert shifted == pytest.approx(-1.0, abs=1e-6)  # the control: it feels what it should


def test_mbar_of_merged_samples(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """`p_β ∝ e^{-x - βax}`, x > 0: `log Z_1 - log Z_0 = -log(1 + a)`, also of forty neighbors in U merged into one."""
    a, betas = 9.0, torch.linspace(0, 1, 6, dtype=torch.float64)
    uniform = draw_uniform(torch.empty(6, 20_000, dtype=torch.float64), generator=generator)
    slope = -a * (1 - uniform).log() / (1 + a * betas[:, None])
    whole = mbar(slope, betas)[-1].item()
    assert whole == pytest.approx(-math.log(1 + a), abs=0.1)  # ± 0.01
    monkeypatch.setattr(sys.modules[mbar.__module__], "_MOST", 6 * 3000)
    assert mbar(slope, betas)[-1].item() == pytest.approx(whole, abs=1e-3)
    monkeypatch.setattr(sys.modules[mbar.__module__], "_MOST", 6 * 3)
    assert abs(mbar(slope, betas)[-1].item() - whole) > 0.01  # the control


def test_jackknife_leaves_out_groups_of_chains(generator: torch.Generator) -> None:
    slope, betas = shifted_gaussians(2.0, 4, 40 * 6, generator)
    chains = slope.unflatten(1, (40, 6))
    value, groups = jackknifed_mbar(chains, betas, 3)
    assert value == pytest.approx(mbar(slope, betas)[-1].item(), abs=1e-7)
    left = torch.stack([mbar(chains[:, :, torch.arange(6) // 2 != i].flatten(1), betas)[-1] for i in range(3)])
    assert torch.allclose(groups, 3 * value - 2 * left, atol=1e-5)
    together = chains[:, :, :1].expand(-1, -1, 6)
    assert jackknifed_mbar(together, betas, 3)[1].std() < 1e-5 < groups.std()  # the control: chains that agree


def test_laws_that_hardly_overlap_are_solved(generator: torch.Generator) -> None:
    """Five standard deviations apart, where whole steps of Newton from far away do not end: the equations hold."""
    slope, betas = shifted_gaussians(5.0, 2, 500, generator)
    exponent = -slope.flatten()[:, None] * betas

    def unsolved(c: torch.Tensor) -> float:
        weights = (exponent - (exponent - c).logsumexp(1, keepdim=True)).exp().sum(0) / 500
        return (weights.log() - c).abs().max().item()

    found = mbar(slope, betas)
    assert unsolved(found) < 1e-7
    assert unsolved(found + torch.tensor([0.0, 0.5])) > 1e-5  # the control


def test_mbar_of_two_laws_is_bennett(generator: torch.Generator) -> None:
    from harmonium.partition.bennett import bennett

    slope, betas = shifted_gaussians(1.5, 2, 300, generator)
    assert mbar(slope, betas)[-1].item() == pytest.approx(bennett(-slope[0], slope[1])[0], abs=1e-7)


def test_rungs_find_a_transition() -> None:
    """`log Z = log(1 + e^{a(β - b)})`: all of the change is at b, and the length `∫ √Var U dβ` is π for large a.

    Three rounds of exact means bring rungs there, where the pilot's neighbors would not trade.
    """
    a, b = 50.0, 0.93

    def energy(betas: torch.Tensor) -> torch.Tensor:
        return -a * torch.sigmoid(a * (betas - b))

    def gaps(betas: torch.Tensor) -> torch.Tensor:
        return (betas.diff() * -energy(betas).diff()).sqrt()

    betas = torch.linspace(0, 1, 3, dtype=torch.float64)
    assert gaps(betas).max() > 4.8  # the control: erfc(2.4) of the trades happen, one in 1,400
    for _ in range(3):
        betas = rungs_again(betas, energy(betas))
    assert betas[0] == 0 and betas[-1] == 1 and bool((betas.diff() > 0).all())
    assert gaps(betas).max() < 1.3  # one in three
    assert 5 <= len(betas) <= 7  # π strides, rounded up, and what the rungs of before leave


def test_tempering_holds_the_exact_value(generator: torch.Generator) -> None:
    rbm = scatter(hm.RBM(hm.Bernoulli(10), hm.Spin(6)), scale=0.5, generator=generator)
    calls: list[tuple[int, int]] = []
    settings = {"n_chains": 64, "n_betas": 200, "generator": generator}
    found = hm.log_z(rbm, method="tempering", **settings, on_beta=lambda i, n: calls.append((i, n)))
    exact = hm.exact_log_z(rbm).value
    assert found.kind == "tempering" and found.trusted
    assert abs(found.value - exact) < 9 * found.error + 1e-6  # Student's law of 15 degrees of freedom: under 1e-6
    assert found.at_least <= exact <= found.at_most
    assert calls == sorted(calls) and calls[-1] == (200, 200)


def test_ladders_that_disagree_or_do_not_travel_say_so(generator: torch.Generator) -> None:
    slope, betas = shifted_gaussians(2.0, 6, 320, generator)
    even = slope.unflatten(1, (10, 32))
    value, groups = jackknifed_mbar(even, betas, 16)
    few = normal_quantile(1e-6) / 3.6  # so wide that chance has no part in it
    wide = value + few * (groups - value)
    assert ladder_doubts(Ladders(even, 100, {}), betas, value, wide) == []
    (stuck,) = ladder_doubts(Ladders(even, 3, {}), betas, value, wide)
    assert "3 round trips" in stuck
    apart = even.clone()
    apart[:, :, :16] += 3.0
    (doubt,) = ladder_doubts(Ladders(apart, 100, {}), betas, *jackknifed_mbar(apart, betas, 16))
    assert "start from noise" in doubt
    late = even.clone()
    late[:, 5:] += 3.0
    (doubt,) = ladder_doubts(Ladders(late, 100, {}), betas, *jackknifed_mbar(late, betas, 16))
    assert "first half of the steps" in doubt


@pytest.mark.filterwarnings("ignore:log Z is not trustworthy")
def test_a_mode_that_no_ladder_keeps_is_missed_in_words(generator: torch.Generator) -> None:
    """Forty units a side that all agree, at a transition of first order: nobody crosses."""
    rbm = hm.RBM(hm.Bernoulli(40), hm.Bernoulli(40))
    with torch.no_grad():
        rbm.weight.fill_(0.25)
        rbm.visible_bias.fill_(-4.9)
        rbm.hidden_bias.fill_(-4.9)
    found = hm.log_z(rbm, method="tempering", n_chains=32, n_betas=100, generator=generator)
    assert not found.trusted and "missed a mode" in found.note and found.error == math.inf
    assert "inf" in str(found)
    with pytest.raises(TypeError, match="needs a BoltzmannMachine"):
        hm.log_z(hm.NeuralEBM(torch.nn.Linear(2, 1), (2,)), method="tempering")
