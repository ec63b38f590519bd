"""Diagnostics against ArviZ, against processes whose autocorrelation is known, and on chains that do not mix."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from torch import Tensor

from harmonium.samplers.diagnostics import (
    autocorrelation,
    autocorrelation_time,
    effective_sample_size,
    split_r_hat,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import arviz

KINDS = ["independent", "positive", "antithetic", "binary", "levels", "apart", "cauchy", "spin"]


def ar1(rho: float, n_chains: int, n_draws: int, generator: torch.Generator) -> Tensor:
    """`x_t = ρ x_{t-1} + √(1-ρ²) ε_t` from its stationary law: autocorrelation ρ^t, time (1+ρ)/(1-ρ)."""
    noise = torch.randn(n_chains, n_draws, generator=generator, dtype=torch.float64)
    chains = [noise[:, 0]]
    for t in range(1, n_draws):
        chains.append(rho * chains[-1] + math.sqrt(1 - rho**2) * noise[:, t])
    return torch.stack(chains, dim=1)


def make(kind: str, n_chains: int, n_draws: int) -> Tensor:
    generator = torch.Generator().manual_seed(n_chains * n_draws)
    rho = {"independent": 0.0, "antithetic": -0.6}.get(kind, 0.8)
    x = ar1(rho, n_chains, n_draws, generator)
    if kind == "binary":
        return (x > 0.7).double()
    if kind == "spin":
        return x.sign()
    if kind == "levels":
        return x.round()
    if kind == "apart":
        return x + torch.arange(n_chains, dtype=x.dtype)[:, None]
    return (torch.special.ndtr(x) - 0.5).mul(torch.pi).tan() if kind == "cauchy" else x


@pytest.mark.parametrize(("n_chains", "n_draws"), [(4, 500), (2, 101), (3, 10), (2, 4), (2, 7)])
@pytest.mark.parametrize("kind", KINDS)
def test_equal_to_arviz(kind: str, n_chains: int, n_draws: int) -> None:
    x = make(kind, n_chains, n_draws)
    used = n_chains * 2 * (n_draws // 2)
    a = x.numpy()
    with np.errstate(all="ignore"):
        wanted = [
            arviz.ess(a, method="bulk"),
            used / arviz.ess(a, method="mean"),
            arviz.rhat(a),
            arviz.rhat(a, method="split"),
        ]
    got = [
        effective_sample_size(x),
        autocorrelation_time(x),
        split_r_hat(x),
        split_r_hat(x, rank_normalized=False),
    ]
    for ours, theirs in zip(got, wanted, strict=True):
        if np.isfinite(theirs):  # where draws are constant ArviZ says NaN; ours is tested below
            assert ours.item() == pytest.approx(theirs, rel=1e-8)
        assert not ours.isnan()


def test_one_chain_equal_to_arviz() -> None:
    x = make("positive", 1, 400)
    assert effective_sample_size(x).item() == pytest.approx(arviz.ess(x.numpy(), method="bulk"), rel=1e-8)
    halves = x.view(2, 200)
    assert split_r_hat(x, rank_normalized=False).item() == pytest.approx(
        arviz.rhat(halves.numpy(), method="identity"), rel=1e-8
    )


@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.5, 0.9])
def test_autocorrelation_time_of_an_autoregressive_process(rho: float) -> None:
    # A sum cut at M ≈ 5τ lags has a standard error of about τ √(2(2M+1)/S) (Sokal 1997), with 1 for τ if τ < 1: 4 of
    # them, with S = 200000, and the relative bias of subtracting means, τ/n. False alarms: below 1e-4 for each ρ.
    n_chains, n_draws = 20, 10_000
    x = ar1(rho, n_chains, n_draws, torch.Generator().manual_seed(1))
    tau = (1 + rho) / (1 - rho)
    scale = max(tau, 1.0)
    tolerance = scale * (4 * math.sqrt(2 * (10 * scale + 1) / (n_chains * n_draws)) + scale / n_draws)
    assert autocorrelation_time(x).item() == pytest.approx(tau, abs=tolerance)
    wrong = ar1(rho + 0.5 * (1 - rho), n_chains, n_draws, torch.Generator().manual_seed(1))
    assert autocorrelation_time(wrong).item() != pytest.approx(tau, abs=tolerance)


def test_autocorrelation_is_the_sum_over_pairs() -> None:
    x = make("apart", 3, 40)
    n = x.shape[1]
    deviation = x - x.mean(1, keepdim=True)
    covariance = torch.stack([(deviation[:, : n - t] * deviation[:, t:]).sum(1).mean() / n for t in range(n)])
    within = x.var(1).mean()
    total = (n - 1) / n * within + x.mean(1).var()
    expected = 1 - (within - covariance) / total
    expected[0] = 1
    torch.testing.assert_close(autocorrelation(x), expected, rtol=1e-10, atol=1e-12)


def test_autocorrelation_of_an_autoregressive_process() -> None:
    # Bartlett: the variance of ρ̂_t is at most (1 + 2 Σ ρ^2s) / S = (1+ρ²)/(1-ρ²)/S; 5 of its roots, 10 lags: below 1e-5
    x = ar1(0.7, 20, 5_000, torch.Generator().manual_seed(2))
    lags = torch.arange(10, dtype=torch.float64)
    error = math.sqrt((1 + 0.49) / (1 - 0.49) / x.numel())
    torch.testing.assert_close(autocorrelation(x)[:10], 0.7**lags, rtol=0, atol=5 * error + 6 / 5_000)


def test_stuck_chains_are_seen() -> None:
    # independent draws: (R̂² - 1) n is about χ²₇/7 - 1 with n = 250, so R̂ > 1.02 has probability below 1e-10
    generator = torch.Generator().manual_seed(3)
    good = torch.randn(4, 500, generator=generator)
    stuck = good + 10 * torch.arange(4.0)[:, None]
    assert split_r_hat(good) < 1.02 < 2 < split_r_hat(stuck)
    assert split_r_hat(good, rank_normalized=False) < 1.02 < 2 < split_r_hat(stuck, rank_normalized=False)
    assert effective_sample_size(stuck) < 10 < 1000 < effective_sample_size(good)
    assert autocorrelation(stuck)[50] > 0.9


def test_drift_is_seen_by_splitting() -> None:
    # the chains agree with each other, their halves do not: W = 1 + 2.5²/12, and eight means, four of them 2.5 higher,
    # have variance 8/7 · 1.25²; the standard error of R̂ is below 2 %, five of them: false alarms below 1e-6
    x = torch.linspace(0, 5, 500) + torch.randn(4, 500, generator=torch.Generator().manual_seed(9))
    r_hat = math.sqrt(1 + (8 / 7 * 1.25**2) / (1 + 2.5**2 / 12))
    assert split_r_hat(x, rank_normalized=False).item() == pytest.approx(r_hat, rel=0.1)
    assert split_r_hat(x) > 1.1
    assert arviz.rhat(x.numpy(), method="identity") < 1.02  # unsplit, nothing shows


def test_scales_are_seen_only_when_rank_normalized_and_folded() -> None:
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(4, 2000, generator=generator) * torch.tensor([1.0, 1.0, 1.0, 5.0])[:, None]
    assert split_r_hat(x) > 1.1
    assert split_r_hat(x, rank_normalized=False) < 1.02


@pytest.mark.parametrize("value", [0.0, 0.1, -3.0, 1e300])
def test_constant_draws(value: float) -> None:
    x = torch.full((3, 20), value, dtype=torch.float64)
    assert effective_sample_size(x) == 60
    assert split_r_hat(x) == 1
    assert split_r_hat(x, rank_normalized=False) == 1
    assert autocorrelation_time(x) == 1
    assert autocorrelation(x).tolist() == [1.0] + [0.0] * 19


@pytest.mark.parametrize("rank_normalized", [True, False])
def test_constant_chains_that_differ_are_infinitely_far(rank_normalized: bool) -> None:
    x = torch.tensor([0.1, 0.7, 0.3])[:, None].expand(3, 20)
    assert split_r_hat(x, rank_normalized=rank_normalized) == math.inf
    assert effective_sample_size(x) <= 6


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_independent_of_the_scale(scale: float) -> None:
    x = make("positive", 2, 100)
    for function in (effective_sample_size, split_r_hat, autocorrelation_time, autocorrelation):
        torch.testing.assert_close(function(scale * x), function(x), rtol=1e-9, atol=1e-12)


def test_shapes_dtypes_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(2, 50, 3, 4, generator=torch.Generator().manual_seed(5))
    for function in (effective_sample_size, split_r_hat, autocorrelation_time):
        whole = function(x)
        assert whole.shape == (3, 4)
        assert whole.dtype == torch.float64
        assert torch.equal(whole[1, 2], function(x[:, :, 1, 2]))
        with monkeypatch.context() as patch:
            patch.setattr("harmonium.samplers.diagnostics._BLOCK", 250)
            assert torch.equal(function(x), whole)
    assert autocorrelation(x).shape == (50, 3, 4)
    torch.testing.assert_close(autocorrelation(x)[:, 1, 2], autocorrelation(x[:, :, 1, 2]))
    assert effective_sample_size((x > 0).int()).shape == (3, 4)


@pytest.mark.parametrize("function", [effective_sample_size, split_r_hat, autocorrelation_time, autocorrelation])
def test_errors_say_what_to_do(function: object) -> None:
    assert callable(function)
    for bad in (torch.zeros(2, 3), torch.zeros(10), torch.zeros(0, 10)):
        with pytest.raises(ValueError, match=r"n_chains, n_draws.*Got"):
            function(bad)
    with pytest.raises(ValueError, match="finite"):
        function(torch.full((2, 10), math.nan))
    with pytest.raises(TypeError, match="real"):
        function(torch.zeros(2, 10, dtype=torch.complex64))
    with pytest.raises(TypeError, match=r"torch\.Tensor"):
        function([[0.0] * 10])
