"""What every kind of units shares, its bad input, and known answers of single kinds."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from harmonium.draws import draw_bernoulli
from harmonium.testing import ALL_UNITS, check_unit
from harmonium.types import softplus
from harmonium.units import (
    Bernoulli,
    Binomial,
    Categorical,
    Gaussian,
    MaxPooled,
    Mixed,
    Multinary,
    MultivariateGaussian,
    NReLU,
    Poisson,
    Spin,
    Units,
)


class Minimal(Units):
    """The least that a new unit needs: levels 0 and 2, to use the default hooks."""

    def log_partition(self, field: Tensor) -> Tensor:
        return softplus(2 * field)

    def sample(self, field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        return 2 * draw_bernoulli((2 * field).sigmoid(), generator=generator)

    def mode(self, field: Tensor) -> Tensor:
        return 2 * (field > 0).to(field.dtype)

    def states(self) -> Tensor:
        return torch.tensor([0.0, 2.0], dtype=torch.float64)


def test_a_unit_needs_three_methods() -> None:
    units = Minimal(3)
    field = torch.linspace(-2, 2, 3, dtype=torch.float64)
    assert torch.allclose(units.mean(field), 2 * (2 * field).sigmoid())
    assert torch.allclose(units.variance(field), 4 * (2 * field).sigmoid() * (-2 * field).sigmoid())
    assert torch.allclose(units.link(units.mean(field)), field)
    tracked = field.clone().requires_grad_()
    (slope,) = torch.autograd.grad(units.mean(tracked).sum(), tracked)
    assert torch.allclose(slope, units.variance(field))


def test_default_hooks_pass_the_contract() -> None:
    check_unit(Minimal(2))


def test_a_contract_failure_is_an_assertion_error() -> None:
    class Broken(Bernoulli):
        def mean(self, field: Tensor) -> Tensor:
            return field

    with pytest.raises(AssertionError, match="mean of the statistic"):
        check_unit(Broken(2))


@pytest.mark.parametrize("make", ALL_UNITS, ids=lambda make: repr(make()))
def test_repr_builds_the_same_units(make: Callable[[], Units]) -> None:
    import harmonium.units

    units = make()
    again = eval(repr(units), dict(vars(harmonium.units)))  # noqa: S307 (the text is ours)
    assert repr(again) == repr(units)
    assert again.shape == units.shape


@pytest.mark.parametrize("make", ALL_UNITS, ids=lambda make: repr(make()))
def test_saved_and_copied(make: Callable[[], Units]) -> None:
    units, other = make(), make()
    other.load_state_dict(units.state_dict())
    field = torch.full(units.shape, 0.3)
    assert torch.equal(copy.deepcopy(units).mean(field), other.mean(field))


@pytest.mark.parametrize("make", ALL_UNITS, ids=lambda make: repr(make()))
def test_configurations_are_all_different(make: Callable[[], Units]) -> None:
    units = make()
    n = units.n_configurations()
    if n is None:
        with pytest.raises(ValueError, match="infinitely many states"):
            units.configurations(torch.arange(2))
        return
    if n < 1000:
        states = units.configurations(torch.arange(n))
        assert states.shape == (n, *units.shape)
        assert len(states.flatten(1).unique(dim=0)) == n
        units.check_support(states, "states")


def test_configurations_count_with_the_last_site_fastest() -> None:
    assert Bernoulli(2).configurations(torch.arange(4)).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    mixed = Mixed(Bernoulli(1), Categorical(1, 2))
    assert mixed.configurations(torch.arange(4)).tolist() == [[0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]]


@pytest.mark.parametrize("make", ALL_UNITS, ids=lambda make: repr(make()))
def test_sites_cover_the_layer_once(make: Callable[[], Units]) -> None:
    units = make()
    seen = torch.zeros(2, *units.shape)
    for index in range(math.prod(units.sites)):
        seen[units.site(index)] += 1
    assert torch.equal(seen, torch.ones_like(seen))


def test_mixed_has_no_site_beyond_its_last() -> None:
    with pytest.raises(IndexError, match="has 3 units"):
        Mixed(Bernoulli(2), Categorical(1, 3)).site(3)


# --- bad input --------------------------------------------------------------------------------------------------------
BAD = [
    (lambda: Bernoulli(), ValueError, "Bernoulli needs the sizes of its layer as positive integers"),
    (lambda: Spin(0), ValueError, r"Got \(0,\)"),
    (lambda: Bernoulli(2.5), ValueError, r"Got \(2.5,\)"),  # type: ignore[arg-type]
    (lambda: Binomial(3, levels=0), ValueError, "`levels` must be at least 1. Got 0"),
    (lambda: Multinary(3, levels=0), ValueError, "`levels` must be at least 1. Got 0"),
    (lambda: Multinary(3, levels=3, k=0.0), ValueError, "`k` must be positive. Got 0.0"),
    (lambda: Multinary(3, levels=3, k=-1.0), ValueError, "`k` must be positive"),
    (lambda: Multinary(3, levels=3, k=float("nan")), ValueError, "`k` must be positive. Got nan"),
    (lambda: Multinary(3, levels=3, activation="swish"), ValueError, "one of sigmoid, relu, tanh, softplus.*'swish'"),
    (lambda: Gaussian(3, initial_sigma=0.0), ValueError, "`initial_sigma` must be finite and at least floor=0.001"),
    (lambda: Gaussian(3, initial_sigma=float("nan")), ValueError, "Got nan. A Gaussian unit needs a spread"),
    (lambda: Gaussian(3, floor=0.0), ValueError, "`floor` must be a positive number. Got 0.0"),
    (lambda: Mixed(), TypeError, "Mixed needs layers of units"),
    (lambda: Mixed(3), TypeError, "Mixed needs layers of units"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("build", "kind", "text"), BAD)
def test_bad_arguments(build: Callable[[], Units], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        build()


@pytest.mark.parametrize("make", ALL_UNITS, ids=lambda make: repr(make()))
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_unknown_values_are_refused(make: Callable[[], Units], value: float) -> None:
    units = make()
    x = units.mode(torch.zeros(2, *units.shape)).detach().clone()
    x.reshape(-1)[-1] = value
    with pytest.raises(ValueError, match=r"must be finite. It holds NaN or infinity. Drop those rows"):
        units.check_support(x, "v")


@pytest.mark.parametrize(
    ("units", "value", "text"),
    [
        (Bernoulli(3), 2.0, r"`v` must lie in \[0, 1\] to match Bernoulli\(3\). Got values from 2 to 2. Rescale"),
        (Bernoulli(3), -0.1, r"\[0, 1\]"),
        (Spin(3), 1.5, r"\[-1, 1\]"),
        (Binomial(3, levels=4), 5.0, r"\[0, 4\] to match Binomial\(3, levels=4\)"),
        (Multinary(3, levels=4), 4.5, r"\[0, 4\]"),
        (Multinary(3, levels=4, exact=True), -1.0, r"\[0, 4\]"),
        (Poisson(3), -1.0, r"\[0, inf\]"),
        (NReLU(3), -1.0, r"\[0, inf\]"),
        (Mixed(Gaussian(2), Bernoulli(1)), 3.0, r"`v \(part 1 of 2\)` must lie in \[0, 1\]"),
    ],
)
def test_values_outside_the_support(units: Units, value: float, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        units.check_support(torch.full((2, *units.shape), value), "v")


def test_means_are_inside_the_support() -> None:
    Bernoulli(3).check_support(torch.full((2, 3), 0.5), "v")
    Gaussian(3).check_support(torch.full((2, 3), -1e6), "v")
    Poisson(1).check_support(torch.full((2, 1), 1e6), "v")
    Bernoulli(3).check_support(torch.zeros(0, 3), "v")


@pytest.mark.parametrize(
    ("units", "value", "text"),
    [
        (
            Bernoulli(3),
            0.3,
            r"must hold values of Bernoulli\(3\): 0 and 1. Got 0.3, and 6 of 6 units have no such value",
        ),
        (Spin(3), 0.0, r"-1 and 1. Got 0, and"),
        (Binomial(3, levels=4), 1.9, r"0, 1, …, 4. Got 1.9"),
        (Multinary(3, levels=255, exact=True), 254.5, r"0, 1, …, 255. Got 254.5"),
        (Poisson(3), 1.5, r"0, 1, 2, …. Got 1.5"),
        (NReLU(3), 0.5, r"0, 1, 2, …. Got 0.5"),
        (MaxPooled(1, 2, 4), 0.25, r"Got \[0.25, 0.25, 0.25, 0.25\], and 4 of 4"),
        (Mixed(Gaussian(2), Bernoulli(1)), 0.5, r"`v \(part 1 of 2\)` must hold values of Bernoulli"),
    ],
)
def test_values_between_those_of_the_units(units: Units, value: float, text: str) -> None:
    x = torch.full((2, *units.shape), value)
    units.check_support(x.clamp(*units.bounds()) if value != 1.0 else x, "v")  # a mean, or in the bounds at least
    with pytest.raises(ValueError, match=text):
        units.check_values(x, "v")


@pytest.mark.parametrize("make", ALL_UNITS, ids=lambda make: repr(make()))
def test_draws_and_states_are_values(make: Callable[[], Units], generator: torch.Generator) -> None:
    """Every draw is a value, unit by unit; a value that is moved is none, at that unit alone."""
    units = make()
    x = units.sample(torch.zeros(50, *units.shape), generator=generator).detach()
    assert units.in_support(x).all() and units.in_support(x).shape == (50, *units.sites)
    units.check_values(x, "x")
    units.check_values(x[:0], "x")
    moved = x.clone()
    moved.reshape(50, -1)[7, 0] += 1e-3 if units.support in ("finite", "integer") or isinstance(units, Mixed) else 1e6
    bad = ~units.in_support(moved)
    takes_all = isinstance(units, Gaussian | MultivariateGaussian)
    assert bad.sum() == (0 if takes_all else 1)
    assert bool(bad[7].any()) != takes_all


@pytest.mark.parametrize("units", [Categorical(2, 3), Mixed(Bernoulli(1), Categorical(1, 3))])
def test_half_known_vectors_are_refused(units: Units) -> None:
    known = torch.ones(units.shape, dtype=torch.bool)
    units.check_known(known, "given")
    units.check_known(~known, "given")
    known.reshape(-1)[-1] = False
    with pytest.raises(ValueError, match="`given` knows a one-hot vector of Categorical.* in part. Give all of its"):
        units.check_known(known, "given")


# --- fields from data -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", ALL_UNITS, ids=lambda make: repr(make()))
def test_fitted_field_has_the_mean_of_the_data(make: Callable[[], Units], generator: torch.Generator) -> None:
    units = make().double()
    field = torch.full(units.shape, 0.4, dtype=torch.float64)
    x = units.sample(field.expand(500, *units.shape), generator=generator).detach()
    expected = (x.sum(0) + units.mean(torch.zeros_like(field)).detach()) / 501
    assert torch.allclose(units.mean(units.fitted_field(x)).detach(), expected, atol=1e-6)


@pytest.mark.parametrize("make", ALL_UNITS, ids=lambda make: repr(make()))
def test_constant_columns_get_a_finite_field(make: Callable[[], Units]) -> None:
    units = make()
    low, high = units.bounds()
    values = [0.0, 1.0] if isinstance(units, Mixed) or math.isinf(high) else [low, high]
    for value in values:
        assert units.fitted_field(torch.full((100, *units.shape), value)).isfinite().all()


def test_missing_values_are_left_out() -> None:
    x = torch.tensor([[1.0, float("nan")], [0.0, float("nan")], [1.0, 1.0]], dtype=torch.float64)
    mean = Bernoulli(2).fitted_field(x).sigmoid()
    assert mean.tolist() == pytest.approx([(2 + 0.5) / 4, (1 + 0.5) / 2])


@given(
    kind=st.sampled_from(range(len(ALL_UNITS))),
    batch=st.lists(st.integers(0, 3), max_size=2),
    scale=st.floats(0, 1e4),
    seed=st.integers(0, 2**31),
)
def test_any_batch_and_field_is_finite(kind: int, batch: list[int], scale: float, seed: int) -> None:
    units = ALL_UNITS[kind]()
    generator = torch.Generator().manual_seed(seed)
    field = torch.empty(*batch, *units.shape).normal_(generator=generator) * scale
    x = units.sample(field, generator=generator).detach()
    units.check_support(x, "x")
    results = [x, units.mean(field), units.variance(field), units.mode(field), units.statistic(x)]
    assert all(result.shape == field.shape for result in results)
    results += [units.log_partition(field), units.log_base(x)]
    assert all(bool(result.isfinite().all()) for result in results)


# --- known answers ----------------------------------------------------------------------------------------------------
def test_bernoulli_is_the_binary_unit() -> None:
    field = torch.tensor([-2.0, 0.0, 3.0], dtype=torch.float64)
    assert torch.allclose(Bernoulli(3).log_partition(field), (1 + field.exp()).log())
    assert torch.allclose(Spin(3).log_partition(field), (2 * field.cosh()).log())


def test_spin_and_bernoulli_are_one_law() -> None:
    field = torch.tensor([-2.0, 0.1, 3.0], dtype=torch.float64)
    assert torch.allclose(Spin(3).mean(field), 2 * Bernoulli(3).mean(2 * field) - 1)


def test_categorical_of_two_classes_is_bernoulli() -> None:
    field = torch.tensor([[0.3, -1.2]], dtype=torch.float64)
    assert Categorical(1, 2).mean(field)[0, 1].item() == pytest.approx(torch.tensor(-1.5).sigmoid().item(), abs=1e-7)


def test_gaussian_sigma_has_a_floor() -> None:
    units = Gaussian(2, floor=0.1)
    with torch.no_grad():
        units.log_sigma.fill_(-50.0)
    assert torch.equal(units.sigma, torch.full((2,), 0.1))
    assert units.log_partition(torch.ones(2)).isfinite().all()
    units.project()
    assert torch.allclose(units.log_sigma.exp(), torch.tensor(0.1))


def test_mixed_projects_its_parts() -> None:
    units = Mixed(Bernoulli(1), Gaussian(2, floor=0.1))
    part = units.parts[1]
    assert isinstance(part, Gaussian)
    with torch.no_grad():
        part.log_sigma.fill_(-50.0)
    units.project()
    assert part.log_sigma.min().item() == pytest.approx(math.log(0.1))


def test_support_of_mixed_layers() -> None:
    assert Mixed(Bernoulli(1), Categorical(1, 3)).support == "finite"
    assert Mixed(Gaussian(1), Gaussian(2)).support == "real"
    assert Mixed(Gaussian(1), Bernoulli(2)).support == "mixed"
    assert not Mixed(Bernoulli(1), Multinary(1, levels=3)).proper
    assert Mixed(Bernoulli(2), Categorical(2, 3)).n_configurations() == 36
    assert Mixed(Bernoulli(2), Gaussian(1)).n_configurations() is None


def test_poisson_saturates_instead_of_overflowing() -> None:
    units = Poisson(1)
    field = torch.tensor([19.0, 20.0, 21.0, 50.0], dtype=torch.float64)[:, None]
    values = units.log_partition(field)[:, 0]
    assert values[:2].tolist() == pytest.approx([math.exp(19), math.exp(20)])
    assert (values[3] - values[2]).item() == pytest.approx(29 * math.exp(20))
    assert units.mean(field).max().item() == pytest.approx(math.exp(20))
