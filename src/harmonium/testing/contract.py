"""How a contract is held: checks that say in words what was promised and what was found."""

from __future__ import annotations

import inspect
import math
from types import ModuleType
from typing import TypeVar

import torch
from torch import Tensor

FALSE_ALARM = 1e-6
"""How often one statistical check fails on correct code: at most once in a million, by bounds that are written down."""


Member = TypeVar("Member")


def members(room: ModuleType, base: type[Member]) -> list[type[Member]]:
    """Return the classes of a family that a package exports, all but its base.

    >>> from harmonium import units
    >>> [kind.__name__ for kind in members(units, units.Units)][:2]
    ['Bernoulli', 'Binomial']
    """
    found = (value for value in vars(room).values() if isinstance(value, type) and issubclass(value, base))
    return [kind for kind in found if kind is not base and not inspect.isabstract(kind)]


class ContractError(AssertionError):
    """A member of a family does not do what the family promises."""


def require(condition: bool, text: str) -> None:
    """Raise a `ContractError` with this text unless the condition holds.

    >>> require(1 + 1 == 2, "arithmetic")
    """
    if not condition:
        raise ContractError(text)


def require_close(actual: Tensor, expected: Tensor, *, tolerance: float, what: str) -> None:
    """Raise unless two tensors have one shape and `|actual - expected| ≤ tolerance · max(1, |expected|)` everywhere."""
    require(actual.shape == expected.shape, f"{what}: the shape is {tuple(actual.shape)}, not {tuple(expected.shape)}.")
    if not actual.numel():
        return
    error = (actual - expected).abs() / expected.abs().clamp_min(1.0)
    worst = error.nan_to_num(nan=math.inf).max().item()
    require(worst <= tolerance, f"{what}: they differ by {worst:.3g} (tolerance {tolerance:.3g}).")


def require_shape(actual: Tensor, shape: tuple[int, ...], *, what: str) -> None:
    """Raise unless a tensor has this shape."""
    require(tuple(actual.shape) == shape, f"{what} has shape {tuple(actual.shape)}, not {shape}.")


def chi_square_tail(counts: Tensor, law: Tensor) -> float:
    """Return `P(χ² ≥ observed)` of counts against a law, cells expected fewer than 25 times put together."""
    expected = law * counts.sum()
    small = expected < 25
    if bool(small.any()):
        counts = torch.cat([counts[~small], counts[small].sum()[None]])
        expected = torch.cat([expected[~small], expected[small].sum()[None]])
        if expected[-1] < 25 and len(expected) > 1:
            smallest = expected[:-1].argmin()
            counts[smallest] += counts[-1]
            expected[smallest] += expected[-1]
            counts, expected = counts[:-1], expected[:-1]
    if len(counts) < 2:
        return 1.0
    statistic = ((counts - expected).square() / expected).sum()
    return torch.special.gammaincc(torch.tensor((len(counts) - 1) / 2, dtype=statistic.dtype), statistic / 2).item()


def normal_quantile(tail: float) -> float:
    """Return z with `P(|normal| > z) = tail`."""
    return -math.sqrt(2.0) * float(torch.erfinv(torch.tensor(tail - 1.0, dtype=torch.float64)))


def random_generator(*, generator: torch.Generator | None) -> torch.Generator:
    """Return the generator, or a new one with a fixed start: a contract gives the same verdict each time it is run."""
    return torch.Generator().manual_seed(0) if generator is None else generator
