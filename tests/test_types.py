"""The one place where random numbers are drawn, and the checks that every layer shares.

Statistical checks have a false-alarm rate of 1e-6 each: |z| below 4.9.
"""

from __future__ import annotations

import math

import pytest
import torch

import harmonium as hm
from harmonium.draws import (
    draw_bernoulli,
    draw_binomial,
    draw_categorical,
    draw_integers,
    draw_normal,
    draw_permutation,
    draw_poisson,
    draw_uniform,
    draw_words,
)
from harmonium.testing.contract import chi_square_tail, normal_quantile
from harmonium.types import Estimate, as_state, as_tensor, check_dtype, check_shape, gradient, softplus, weighted

Z = normal_quantile(1e-6)


class Named:
    """Something with a short name."""

    def __repr__(self) -> str:
        return "B"


B = Named()


def test_normal_quantile() -> None:
    assert normal_quantile(0.05) == pytest.approx(1.959964, abs=1e-5)
    assert pytest.approx(4.8916, abs=1e-3) == Z


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("p", [1e-6, 1e-5, 0.3, 0.5, 1 - 1e-5])
def test_bernoulli_marginals(p: float, dtype: torch.dtype, generator: torch.Generator) -> None:
    """Far below 2⁻¹⁶ the dither keeps the probability right: 4 million draws see 1e-5 to a tenth."""
    n_rows, n_columns = 200, 20000
    total = draw_bernoulli(torch.full((n_rows, n_columns), p, dtype=dtype), generator=generator).double().sum().item()
    n = n_rows * n_columns
    # At least 1,024 elements have a dither of their own; sharing adds at most n²/1024 · 2⁻³⁴ to the variance.
    variance = n * p * (1 - p) + n * n / 1024 * 2.0**-34
    rounding = 2.0**-24 if dtype == torch.float32 else 0.0
    # A Poisson-like tail for the rare cases: a few more standard deviations and one whole count.
    assert abs(total - n * p) < (Z + 1) * math.sqrt(variance) + n * rounding + 5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bernoulli_is_certain_at_zero_and_one(dtype: torch.dtype, generator: torch.Generator) -> None:
    p = torch.tensor([0.0, 1.0], dtype=dtype).repeat(2_000_000)
    drawn = draw_bernoulli(p, generator=generator)
    assert torch.equal(drawn, p)
    assert drawn.dtype == dtype


def test_bernoulli_is_certain_at_one_in_the_rarest_corner(generator: torch.Generator) -> None:
    """The largest word meets the largest dither once in 30 million draws; rounding must not make them miss."""
    one = torch.ones(32, 2**20)
    assert all(bool(draw_bernoulli(one, generator=generator).all()) for _ in range(4))


def test_bernoulli_probability_differs_by_element(generator: torch.Generator) -> None:
    p = torch.linspace(0, 1, 101, dtype=torch.float64)
    n = 20000
    mean = draw_bernoulli(p.expand(n, -1), generator=generator).mean(0)
    assert ((mean - p).abs() <= (Z + 0.5) * (p * (1 - p) / n).sqrt()).all()


def test_bernoulli_elements_are_independent(generator: torch.Generator) -> None:
    n = 100000
    x = draw_bernoulli(torch.full((n, 4), 0.3, dtype=torch.float64), generator=generator)
    scores = (x - 0.3) / math.sqrt(0.21)
    for first, second in [(scores[:, 0], scores[:, 1]), (scores[:-1, 2], scores[1:, 2]), (scores[:, 0], scores[:, 3])]:
        assert abs((first * second).sum().item()) / math.sqrt(n) < Z


def test_bernoulli_of_a_wrong_probability_is_seen(generator: torch.Generator) -> None:
    """Negative control: 1 % off at p = 0.3 fails the same test by far."""
    n = 4_000_000
    total = draw_bernoulli(torch.full((n,), 0.303), generator=generator).sum(dtype=torch.float64).item()
    assert abs(total - 0.3 * n) > 2 * Z * math.sqrt(n * 0.21)


def test_words_are_uniform(generator: torch.Generator) -> None:
    words = draw_words(torch.empty(400001), generator=generator)
    assert words.shape == (400001,)
    assert words.dtype == torch.int16
    counts = torch.bincount((words.long() + 32768) >> 8, minlength=256).double()
    assert chi_square_tail(counts, torch.full((256,), 1 / 256, dtype=torch.float64)) > 1e-6
    low = torch.bincount(words.long() & 255, minlength=256).double()
    assert chi_square_tail(low, torch.full((256,), 1 / 256, dtype=torch.float64)) > 1e-6


def test_categorical_law(generator: torch.Generator) -> None:
    law = torch.tensor([0.0, 0.2, 0.0, 0.5, 0.299, 0.001, 0.0], dtype=torch.float64)
    drawn = draw_categorical(law.expand(100000, 7), generator=generator)
    assert torch.equal(drawn.sum(-1), torch.ones(100000, dtype=torch.float64))
    counts = drawn.sum(0)
    assert counts[law == 0].sum() == 0
    assert chi_square_tail(counts[law > 0], law[law > 0]) > 1e-6
    assert chi_square_tail(counts[law > 0], torch.full((4,), 0.25, dtype=torch.float64)) < 1e-6


def test_categorical_need_not_be_normalized(generator: torch.Generator) -> None:
    drawn = draw_categorical(torch.tensor([3.0, 1.0]).expand(40000, 2), generator=generator)
    assert abs(drawn[:, 0].mean().item() - 0.75) < Z * math.sqrt(0.1875 / 40000)


DRAWS = {
    "bernoulli": lambda x, g: draw_bernoulli(x, generator=g),
    "categorical": lambda x, g: draw_categorical(x, generator=g),
    "uniform": lambda x, g: draw_uniform(x, generator=g),
    "normal": lambda x, g: draw_normal(x, generator=g),
    "binomial": lambda x, g: draw_binomial(7, x, generator=g),
    "poisson": lambda x, g: draw_poisson(x, generator=g),
}


@pytest.mark.parametrize("name", DRAWS)
def test_same_generator_same_bits(name: str) -> None:
    x = torch.full((50, 3), 0.4)
    first, second, third = (DRAWS[name](x, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(0, 3), (3,), (2, 1, 3)])
def test_draws_keep_shape_and_dtype(name: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    for device in ("cpu", "meta"):
        drawn = DRAWS[name](torch.full(shape, 0.4, dtype=dtype, device=device), None)
        assert drawn.shape == shape
        assert drawn.dtype == dtype
        assert drawn.device.type == device


@pytest.mark.parametrize("name", ["normal", "uniform"])
def test_images_with_channels_last_are_drawn_in_the_order_of_their_memory(name: str) -> None:
    images = torch.empty(4, 3, 5, 6).to(memory_format=torch.channels_last)
    drawn = DRAWS[name](images, torch.Generator().manual_seed(1))
    assert drawn.stride() == images.stride()
    assert torch.equal(
        drawn.permute(0, 2, 3, 1), DRAWS[name](torch.empty(4, 5, 6, 3), torch.Generator().manual_seed(1))
    )


def test_no_draw_touches_the_global_generator() -> None:
    before = torch.get_rng_state()
    for draw in DRAWS.values():
        draw(torch.full((3, 3), 0.4), torch.Generator().manual_seed(1))
    draw_integers(5, (3,), generator=torch.Generator())
    draw_permutation(5, generator=torch.Generator())
    assert torch.equal(before, torch.get_rng_state())


def test_integers_and_permutations(generator: torch.Generator) -> None:
    values = draw_integers(5, (50000,), generator=generator)
    counts = torch.bincount(values, minlength=5).double()
    assert chi_square_tail(counts, torch.full((5,), 0.2, dtype=torch.float64)) > 1e-6
    assert draw_permutation(9, generator=generator).sort().values.tolist() == list(range(9))


@pytest.mark.parametrize(("name", "mean", "variance"), [("binomial", 2.8, 1.68), ("poisson", 0.4, 0.4)])
def test_counts_have_their_moments(name: str, mean: float, variance: float, generator: torch.Generator) -> None:
    x = DRAWS[name](torch.full((40000,), 0.4, dtype=torch.float64), generator)
    assert abs(x.mean().item() - mean) < Z * math.sqrt(variance / 40000)
    assert abs(x.var().item() - variance) < Z * math.sqrt(x.sub(mean).square().var().item() / 40000)


def test_chi_square_tail_against_scipy() -> None:
    from scipy import stats

    counts = torch.tensor([480.0, 520.0, 1000.0], dtype=torch.float64)
    law = torch.tensor([0.25, 0.25, 0.5], dtype=torch.float64)
    assert chi_square_tail(counts, law) == pytest.approx(stats.chisquare(counts, law * 2000).pvalue, rel=1e-9)
    assert chi_square_tail(torch.tensor([100.0]), torch.ones(1)) == 1.0
    rare = torch.tensor([1990.0, 3.0, 4.0, 3.0], dtype=torch.float64)
    assert chi_square_tail(rare, torch.tensor([0.995, 0.0015, 0.002, 0.0015], dtype=torch.float64)) == 1.0


# --- the checks -------------------------------------------------------------------------------------------------------
def test_check_shape_says_what_to_do() -> None:
    with pytest.raises(
        ValueError,
        match=r"`v` must have shape \(\*batch, 784\) to match visible=B\. Got \(64, 1, 28, 28\)\. Reshape it",
    ):
        check_shape(torch.zeros(64, 1, 28, 28), (784,), name="v", layer="visible", owner=B)
    with pytest.raises(TypeError, match=r"Got torch.int64\. Convert it with v\.float\(\)"):
        check_shape(torch.zeros(3, dtype=torch.int64), (3,), name="v", layer="visible", owner=B)
    with pytest.raises(TypeError, match=r"must be a torch.Tensor\. Got list\. Convert it with torch.as_tensor\(v\)"):
        check_shape([1.0], (1,), name="v", layer="visible", owner=B)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Got \(\)"):
        check_shape(torch.zeros(()), (3,), name="v", layer="visible", owner=B)
    check_shape(torch.zeros(0, 3), (3,), name="v", layer="visible", owner=B)


def test_check_dtype_says_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"`v` must be torch.float32 .* Got torch.float64\. Convert it with v\.to\("):
        check_dtype(torch.zeros(3, dtype=torch.float64), torch.zeros(1), name="v")


def test_softplus_keeps_its_digits() -> None:
    x = torch.tensor([-800.0, -30.0, 0.0, 25.0, 39.0, 41.0, 800.0], dtype=torch.float64)
    exact = [math.exp(-800), math.log1p(math.exp(-30)), math.log(2), 25 + math.log1p(math.exp(-25))]
    exact += [39 + math.log1p(math.exp(-39)), 41.0, 800.0]
    assert softplus(x).tolist() == pytest.approx(exact, rel=1e-15, abs=1e-300)


def test_weighted() -> None:
    x = torch.ones(2, 3, 4)
    assert weighted(x, 2.0).sum() == 48
    assert weighted(x, torch.tensor(2.0)).sum() == 48
    assert torch.equal(weighted(x, torch.tensor([1.0, 3.0]))[:, 0, 0], torch.tensor([1.0, 3.0]))
    assert weighted(x, torch.arange(6.0).reshape(2, 3))[1, 2, 0] == 5


def test_gradient_is_made_once() -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    assert gradient(parameter) is gradient(parameter)
    assert gradient(parameter).tolist() == [0.0, 0.0]


def test_several_arrays_in_place_of_one_are_refused() -> None:
    """`fit` takes data and labels as a tuple; where there is no such rule, numpy's words would say nothing."""
    machine = hm.ClassRBM(hm.Bernoulli(4), hm.Bernoulli(2), 3)
    x, y = torch.zeros(5, 4), torch.zeros(5, dtype=torch.int64)
    with pytest.raises(TypeError, match=r"Got a tuple of 2. Name the layers .* \{'visible': x, 'label': y\}"):
        hm.log_likelihood(machine, (x, y))
    assert hm.log_likelihood(machine, {"visible": x, "label": y}).mean().n_samples == 5
    assert as_tensor([torch.ones(2), torch.zeros(2)]).shape == (2, 2)  # rows, one by one


def test_as_state() -> None:
    x = torch.zeros(2)
    assert as_state(x, "visible") == {"visible": x}
    original = {"hidden": x}
    assert as_state(original, "visible") is not original


def test_estimate_says_when_it_is_not_trustworthy() -> None:
    assert "not trustworthy: too wide" in str(Estimate(1.0, 0.5, 0.0, 2.0, "sandwich", trusted=False, note="too wide"))
    assert str(Estimate(1.25, 0.0, 1.25, 1.25, "exact")) == "1.25 (exact)"
    many = Estimate(torch.tensor([1.0, 3.0]), torch.zeros(2), torch.zeros(2), torch.ones(2), "exact")
    assert many.mean().value == 2.0
    assert "(2,) values, mean 2.00 (exact), ± 1 over 2 samples" in str(many)


def test_no_samples_have_no_mean() -> None:
    empty = Estimate(torch.zeros(0), 0.0, torch.zeros(0), torch.zeros(0), "exact")
    assert str(empty) == "(0,) values"
    assert "no samples" in empty._repr_html_()
    with pytest.raises(ValueError, match="no mean of no samples"):
        empty.mean()
