"""The contract of units: everything follows from the log-partition function, and the draws from the law."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import harmonium.units
from harmonium.draws import draw_uniform
from harmonium.testing.contract import (
    FALSE_ALARM,
    chi_square_tail,
    members,
    normal_quantile,
    random_generator,
    require,
    require_close,
    require_shape,
)
from harmonium.units import Mixed, Units

ALL_UNITS: list[Callable[[], Units]] = [
    lambda kind=kind, i=i: kind.examples()[i]  # type: ignore[misc]
    for kind in members(harmonium.units, Units)
    for i in range(len(kind.examples()))
]
"""A maker of each kind of units: called anew for each test."""

_TENSOR_METHODS = ("log_partition", "mean", "variance", "mode", "statistic", "log_base", "link", "sample")
_PER_UNIT = ("log_partition", "log_base")
_N_FIELDS = 7


def check_unit(units: Units, *, n_samples: int = 20000, generator: torch.Generator | None = None) -> None:
    """Hold a layer of units to the contract of section "Units" of the design; raise `ContractError` where it fails.

    - `exp A(θ)` equals the sum over states, the long sum or the quadrature of `e^{θ·s(x)} μ(x)`;
    - `mean` and `variance` are the first two derivatives of `A` (of the statistic), `mode` is the most probable value;
    - draws follow the exact law (χ² or Kolmogorov-Smirnov; those of a unit without a base measure have its mean, at
      fields far out too) and are independent (correlation of neighbors), each at a false-alarm rate of 1e-6; the same
      generator gives the same draws, and they are values that the units can take;
    - `link(mean(θ)) = θ`; everything is finite at |θ| = 1000, in float32 and float64;
    - any batch shape, none at all and an empty one included; the dtype is kept; everything works on `device="meta"`.

    >>> check_unit(Bernoulli(3))
    """
    generator = random_generator(generator=generator)
    precise = copy.deepcopy(units).double()
    fields = (draw_uniform(torch.empty(_N_FIELDS, *units.shape).double(), generator=generator) * 2 - 1) * 3
    for part, field in _parts(precise, fields):
        if part.proper:
            _check_partition(part, field)
    _check_moments(precise, fields)
    _check_link(precise, fields)
    for part, field in _parts(precise, fields):
        (_check_draws if part.proper else _check_mean_of_draws)(part, field[:3], n_samples, generator)
    _check_repeats(precise, fields)
    for dtype in (torch.float32, torch.float64):
        _check_extremes(copy.deepcopy(units).to(dtype), dtype)
        _check_shapes(copy.deepcopy(units).to(dtype), dtype, "cpu")
    _check_shapes(copy.deepcopy(units).to("meta"), torch.float32, "meta")


def _parts(units: Units, fields: Tensor) -> Iterator[tuple[Units, Tensor]]:
    """Yield the layers of one kind that make up the units, each with its fields."""
    if isinstance(units, Mixed):
        yield from zip(units.parts, units.split(fields), strict=True)
    else:
        yield units, fields


def _support(units: Units, field: Tensor) -> tuple[Tensor, Tensor]:
    """Return points of every unit's support, `(n_points, *batch, *shape)`, and the logarithm of what each stands for.

    All states of a finite unit; 0..n far into the tail of a count; a trapezoidal grid of 12 standard deviations either
    side for a real one, for which the rule is spectrally accurate; of a vector, 9 of them along each of its axes.
    """
    mean, variance = units.mean(field).detach(), units.variance(field).detach()
    if _is_vector(units):
        side = torch.linspace(-9.0, 9.0, 181, dtype=field.dtype)
        corners = torch.cartesian_prod(*[side] * units.shape[-1]).reshape(-1, *(1,) * (field.ndim - 1), units.shape[-1])
        steps = units.mean(torch.eye(units.shape[-1], dtype=field.dtype).unsqueeze(-2)).detach().squeeze(-2)
        log_volume = torch.linalg.slogdet(steps).logabsdet + units.shape[-1] * math.log(18.0 / 180)
        return units.mean(field + corners).detach(), log_volume
    if units.support == "real":
        t = torch.linspace(-12.0, 12.0, 2001, dtype=field.dtype).reshape(-1, *(1,) * field.ndim)
        spread = variance.sqrt()
        return mean + spread * t, (spread * (24.0 / 2000)).log()
    states = units.states()
    if states is None:
        n = int((mean + 20 * variance.sqrt()).max().item()) + 100
        states = torch.arange(n, dtype=torch.float64)
    apart, unit = units.split_sites(field), states.shape[1:]
    places = (1,) * (apart.ndim - len(unit))
    points = states.to(field.dtype).reshape(len(states), *places, *unit)
    return units.join_sites(points.expand(len(states), *apart.shape)), field.new_zeros(())


def _is_vector(units: Units) -> bool:
    """Say whether one unit is a vector of real numbers, which a grid over each of them alone cannot sum."""
    return units.proper and units.support == "real" and units.sites != units.shape


def _log_weights(units: Units, field: Tensor, points: Tensor) -> Tensor:
    """Return `θ·s(x) + log μ(x)` of each unit at each point."""
    product = units.split_sites(field * units.statistic(points))
    while product.ndim > points.ndim - len(units.shape) + len(units.sites):
        product = product.sum(-1)
    return (product + units.log_base(points)).detach()


def _check_partition(units: Units, field: Tensor) -> None:
    points, log_volume = _support(units, field)
    log_weights = _log_weights(units, field, points)
    require_close(
        units.log_partition(field).detach(),
        (log_weights + log_volume).logsumexp(0),
        tolerance=1e-10,
        what=f"{units!r}: log_partition against the sum of its base measure",
    )
    best = _log_weights(units, field, units.mode(field).detach())
    require(
        bool((best >= log_weights.amax(0) - 1e-9).all()), f"{units!r}: mode is not the most probable value everywhere."
    )


def _check_moments(units: Units, field: Tensor) -> None:
    point = field.clone().requires_grad_()
    (slope,) = torch.autograd.grad(units.log_partition(point).sum(), point, create_graph=True)
    require_close(
        units.statistic(units.mean(field)).detach(),
        slope.detach(),
        tolerance=1e-9,
        what=f"{units!r}: the mean of the statistic against ∂A/∂θ",
    )
    if _is_vector(units):
        points, log_volume = _support(units, field)
        law = (_log_weights(units, field, points) + log_volume - units.log_partition(field).detach()).exp()
        spread = (law.unsqueeze(-1) * (points - units.mean(field).detach()).square()).sum(0)
        what = f"{units!r}: the variance against the sum of its base measure"
        require_close(units.variance(field).detach(), spread, tolerance=1e-8, what=what)
        return
    curvature = torch.empty_like(field)
    columns, flat = slope.reshape(len(field), -1), curvature.reshape(len(field), -1)
    for i in range(columns.shape[1]):
        if columns.requires_grad:
            (row,) = torch.autograd.grad(columns[:, i].sum(), point, retain_graph=True)
            flat[:, i] = row.reshape(len(field), -1)[:, i]
    rounding = 1e-11 * slope.detach().square().max().item()  # a variance is what two second moments leave
    require_close(
        units.statistic(units.statistic(units.variance(field))).detach(),
        curvature,
        tolerance=1e-8 + rounding,
        what=f"{units!r}: the variance of the statistic against ∂²A/∂θ²",
    )


def _check_draws(units: Units, fields: Tensor, n_samples: int, generator: torch.Generator) -> None:
    for field in fields:
        drawn = units.sample(field.expand(n_samples, *field.shape), generator=generator).detach()
        units.check_support(drawn, "samples")
        points, log_volume = _support(units, field)
        if _is_vector(units):
            _check_vector_draws(units, field, drawn)
            continue
        law = (_log_weights(units, field, points) + log_volume - units.log_partition(field).detach()).exp()
        n_sites = math.prod(units.sites)
        law = law.reshape(len(law), n_sites)
        sites, grid = (units.split_sites(x).reshape(len(x), n_sites, -1) for x in (drawn, points))
        for site in range(n_sites):
            if units.support == "real":
                _check_continuous_law(units, sites[:, site, 0], grid[:, site, 0], law[:, site])
            else:
                _check_discrete_law(units, sites[:, site], grid[:, site], law[:, site])
        _check_independence(units, field / 3, n_samples, generator)


def _check_mean_of_draws(units: Units, fields: Tensor, n_samples: int, generator: torch.Generator) -> None:
    """Hold the draws of units that have a mean and a variance and no law to their mean: Bernstein's inequality.

    Draws in an interval of width w with variance v have a mean further than `√(2vt/n) + wt/3n` from theirs with
    probability at most `2e^{-t}`.
    """
    low, high = units.bounds()
    far = [torch.full_like(fields[0], value / units.steepness) for value in (-6.0, -2.0, 2.0, 6.0)]
    for field in [*fields, *far]:
        drawn = units.sample(field.expand(n_samples, *field.shape), generator=generator).detach()
        units.check_values(drawn, "samples")
        mean, t = units.mean(field).detach(), math.log(2 * field.numel() / FALSE_ALARM)
        variance = torch.minimum(units.variance(field).detach(), (mean - low) * (high - mean))
        limit = (2 * variance * t / n_samples).sqrt() + (high - low) * t / (3 * n_samples)
        worst = ((drawn.mean(0) - mean).abs() / limit).max().item()
        require(
            worst <= 1,
            f"{units!r}: the draws do not have the mean of the units: {worst:.2f} times as far off as they may be "
            f"(false-alarm rate {FALSE_ALARM:g}).",
        )
    _check_independence(units, fields[0] / 3, n_samples, generator)


def _check_vector_draws(units: Units, field: Tensor, drawn: Tensor) -> None:
    """Raise unless the statistics of the draws are standard normal about the field, in and between the axes."""
    scores = (units.statistic(drawn).detach() - field).reshape(len(drawn), -1)
    normal = torch.linspace(-12.0, 12.0, 2001, dtype=scores.dtype)
    law = (-normal.square() / 2).exp() * (24.0 / 2000) / math.sqrt(2 * math.pi)
    sides = [*scores.unbind(1), scores.sum(1) / scores.shape[1] ** 0.5]
    for side in sides:
        _check_continuous_law(units, side, normal, law)


def _check_discrete_law(units: Units, drawn: Tensor, states: Tensor, law: Tensor) -> None:
    counts = torch.zeros(len(states), dtype=torch.float64)
    values, repeats = drawn.unique(dim=0, return_counts=True)
    for value, n in zip(values, repeats, strict=True):
        same = (states == value).all(-1)
        require(bool(same.any()), f"{units!r}: drew {value.tolist()}, which is not one of its states.")
        counts[int(same.to(torch.uint8).argmax())] = float(n)
    tail = chi_square_tail(counts, law)
    require(
        tail >= FALSE_ALARM,
        f"{units!r}: draws do not follow the law: χ² as large has probability {tail:.2g} (alarm at {FALSE_ALARM:g}).",
    )


def _check_continuous_law(units: Units, drawn: Tensor, grid: Tensor, law: Tensor) -> None:
    n = len(drawn)
    ordered = drawn.sort().values
    right = torch.searchsorted(grid.contiguous(), ordered).clamp(1, len(grid) - 1)
    cumulative = law.cumsum(0) - law / 2
    share = ((ordered - grid[right - 1]) / (grid[right] - grid[right - 1])).clamp(0, 1)
    exact = cumulative[right - 1] + share * (cumulative[right] - cumulative[right - 1])
    steps = torch.arange(n, dtype=exact.dtype) / n
    distance = torch.maximum((exact - steps).abs().max(), (exact - steps - 1 / n).abs().max()).item()
    limit = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * n))  # Dvoretzky, Kiefer, Wolfowitz and Massart
    require(
        distance <= limit,
        f"{units!r}: draws do not follow the law: the distance of the distribution functions is {distance:.3g} (alarm "
        f"above {limit:.3g}, false-alarm rate {FALSE_ALARM:g}).",
    )


def _check_independence(units: Units, field: Tensor, n_samples: int, generator: torch.Generator) -> None:
    # At mild fields, so that the products are not dominated by a few rare values and their sum is nearly normal.
    drawn = units.sample(field.expand(n_samples, *field.shape), generator=generator).detach()
    spread = units.variance(field).detach().sqrt().clamp_min(1e-6)
    scores = ((drawn - units.mean(field).detach()) / spread).reshape(len(drawn), -1)
    z = (scores[1:] * scores[:-1]).sum(0) / math.sqrt(len(drawn) - 1)
    limit = normal_quantile(FALSE_ALARM)
    worst = z.abs().max().item()
    require(worst <= limit, f"{units!r}: successive draws are correlated: z = {worst:.2f}, alarm above {limit:.2f}.")


def _check_link(units: Units, field: Tensor) -> None:
    mean = units.mean(field).detach()
    found = units.link(mean).detach()
    require_close(units.mean(found).detach(), mean, tolerance=1e-8, what=f"{units!r}: mean(link(m)) against m")
    if units.sites == units.shape:
        bends = units.variance(field).detach() > 1e-3  # where the mean is flat it has no inverse
        require_close(
            found.where(bends, 0.0), field.where(bends, 0.0), tolerance=1e-6, what=f"{units!r}: link(mean(θ)) against θ"
        )


def _check_repeats(units: Units, field: Tensor) -> None:
    first, second = (units.sample(field, generator=torch.Generator().manual_seed(7)) for _ in range(2))
    require(bool((first == second).all()), f"{units!r}: the same generator gives other draws.")


def _check_extremes(units: Units, dtype: torch.dtype) -> None:
    for value in (-1000.0, -100.0, 0.0, 100.0, 1000.0):
        field = torch.full((2, *units.shape), value, dtype=dtype)
        for method in ("log_partition", "mean", "variance", "mode"):
            result = getattr(units, method)(field)
            require(
                bool(result.isfinite().all()), f"{units!r}: {method} is not finite at a field of {value:g} in {dtype}."
            )
        drawn = units.sample(field, generator=torch.Generator().manual_seed(7)).detach()
        require(bool(drawn.isfinite().all()), f"{units!r}: a draw is not finite at a field of {value:g} in {dtype}.")
        low, high = units.bounds()
        inside = bool(((drawn >= low) & (drawn <= high)).all()) or isinstance(units, Mixed)
        require(inside, f"{units!r}: a draw leaves [{low:g}, {high:g}] at a field of {value:g} in {dtype}.")
        units.check_support(drawn, "samples")
        require(
            bool(units.log_base(drawn).isfinite().all()), f"{units!r}: log_base of a draw is not finite in {dtype}."
        )


def _check_shapes(units: Units, dtype: torch.dtype, device: str) -> None:
    for batch in ((), (0,), (3,), (2, 1, 3)):
        field = torch.full((*batch, *units.shape), 0.3, dtype=dtype, device=device)
        for method in _TENSOR_METHODS:
            argument = units.mean(field).detach() if method == "link" else field
            result = getattr(units, method)(torch.zeros_like(field) if method == "log_base" else argument)
            what = f"{units!r}: {method} of a batch of shape {batch}"
            require_shape(result, (*batch, *(units.sites if method in _PER_UNIT else units.shape)), what=what)
            require(result.dtype == dtype, f"{what} is {result.dtype}, not {dtype}.")
            require(result.device.type == device, f"{what} is on {result.device}, not on {device}.")
