"""The sandwich and Bennett's estimate."""

from __future__ import annotations

import math
import warnings

import pytest
import torch
from torch import Tensor

import harmonium as hm
from harmonium.draws import draw_normal
from harmonium.partition.bennett import bennett
from harmonium.testing import tiny_rbm
from harmonium.testing.contract import normal_quantile


def paired_rbm(n: int = 30, scale: float = 2.0) -> tuple[hm.RBM, float]:
    """n visible units, each tied to one hidden unit: too many states to count, but `log Z = Σ log Σ_vh e^{…}`."""
    generator = torch.Generator().manual_seed(3)
    rbm = hm.RBM(hm.Bernoulli(n), hm.Bernoulli(n)).double()
    w, b, c = scale * draw_normal(torch.empty(3, n, dtype=torch.float64), generator=generator)
    with torch.no_grad():
        rbm.weight.copy_(w.diag())
        rbm.visible_bias.copy_(b)
        rbm.hidden_bias.copy_(c)
    exact = torch.stack([torch.zeros_like(w), b, c, w + b + c]).logsumexp(0).sum().item()
    return rbm, exact


def test_counts_where_it_can() -> None:
    estimate = hm.log_z(tiny_rbm("Bernoulli", "Poisson"))
    assert estimate.kind == "exact"
    assert estimate.value == hm.exact_log_z(tiny_rbm("Bernoulli", "Poisson")).value


def test_the_sandwich_holds_a_closed_form(generator: torch.Generator) -> None:
    rbm, exact = paired_rbm()
    calls: list[tuple[int, int]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate = hm.log_z(
            rbm, n_chains=200, n_betas=200, n_steps=20, generator=generator, on_beta=lambda i, n: calls.append((i, n))
        )
    assert estimate.kind == "sandwich"
    assert estimate.trusted
    assert estimate.note == ""
    assert estimate.lower < exact < estimate.upper
    assert estimate.lower <= estimate.value <= estimate.upper  # a bound may be what the value is held to
    assert estimate.upper - estimate.lower < 1.0
    assert abs(estimate.value - exact) < 5 * estimate.error
    assert calls == 2 * [(i, 199) for i in range(1, 200)]


def test_a_wide_sandwich_says_so(generator: torch.Generator) -> None:
    generator_of_weights = torch.Generator().manual_seed(4)
    rbm = hm.RBM(hm.Bernoulli(40), hm.Bernoulli(40)).double()
    with torch.no_grad():
        rbm.weight.copy_(3 * draw_normal(rbm.weight, generator=generator_of_weights))
    with pytest.warns(
        UserWarning, match=r"log Z is not trustworthy: the bounds .* nats apart. .*n_betas=12.*reference"
    ):
        estimate = hm.log_z(rbm, n_chains=16, n_betas=3, n_steps=2, generator=generator)
    assert not estimate.trusted
    assert "nats apart" in estimate.note
    assert estimate.upper - estimate.lower > 1.0
    assert str(estimate).endswith(f"not trustworthy: {estimate.note}")


def gaussian_works(delta: float, s: float, n_up: int, n_down: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Log weights of Crooks' symmetric pair of Gaussians: `up ~ N(Δ - s²/2, s²)`, `down ~ N(-Δ - s²/2, s²)`."""
    up, down = (torch.empty(n, dtype=torch.float64).normal_(generator=generator) for n in (n_up, n_down))
    return delta - s**2 / 2 + s * up, -delta - s**2 / 2 + s * down


@pytest.mark.parametrize(("n_up", "n_down"), [(400, 400), (200, 800), (900, 100)])
def test_bennett_on_gaussians(n_up: int, n_down: int, generator: torch.Generator) -> None:
    """The known Δ, an error bar that means what it says (χ² of 150 runs), and a smaller one than either side alone."""
    delta, s, n_runs = 3.7, 2.0, 150
    z = []
    for _ in range(n_runs):
        value, error = bennett(*gaussian_works(delta, s, n_up, n_down, generator))
        z.append((value - delta) / error)
    scores = torch.tensor(z)
    assert abs(scores.mean()) < normal_quantile(1e-6) / math.sqrt(n_runs)
    assert 0.5 < scores.square().mean() < 1.7  # chance under 1e-6 either way, for normal scores
    alone = math.sqrt(math.expm1(s**2) / max(n_up, n_down))
    assert error < alone


def test_bennett_feels_a_shift(generator: torch.Generator) -> None:
    up, down = gaussian_works(0.0, 1.0, 1000, 1000, generator)
    value, error = bennett(up + 1.0, down)
    assert abs(value - 0.5) < 0.1  # halfway between the two sides, far from both
    assert error < 0.05
    assert bennett(up + 1.0, down - 1.0)[0] == pytest.approx(bennett(up, down)[0] + 1.0, abs=1e-9)


@pytest.mark.parametrize("method", ["exact", "sandwich", "tempering", "bounds"])
def test_no_method_answers_for_parameters_that_are_nan(method: str, generator: torch.Generator) -> None:
    rbm = tiny_rbm("Bernoulli", "Spin")
    assert math.isfinite(hm.log_z(rbm, method=method, n_chains=8, n_betas=20, generator=generator).value)
    rbm.weight.data[0, 0] = math.nan
    with pytest.raises(ValueError, match=r"NaN|not finite"):
        hm.log_z(rbm, method=method, n_chains=8, n_betas=20, generator=generator)


def test_a_number_is_no_generator() -> None:
    rbm = tiny_rbm("Bernoulli", "Spin")
    words = r"must be a torch.Generator. Got 3. Use torch.Generator\(\).manual_seed\(3\)"
    with pytest.raises(TypeError, match=words):
        hm.log_z(rbm, generator=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=words):
        hm.sample(rbm, 2, generator=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=words):
        hm.fit(rbm, torch.zeros(4, *rbm.visible.shape), epochs=1, generator=3)  # type: ignore[arg-type]
