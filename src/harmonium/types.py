"""What every other module speaks of: states, energies, estimates with errors, shape checks and random draws."""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from harmonium import native

_LOWEST = torch.iinfo(torch.int64).min

P = ParamSpec("P")
R = TypeVar("R")

State = dict[str, Tensor]
"""A configuration of a machine: the name of each layer and its values, `(*batch, *shape)`."""


@runtime_checkable
class EnergyModel(Protocol):
    """Anything with `free_energy(x) -> (*batch,)`, where `p(x) = exp(-free_energy(x)) / Z`."""

    def free_energy(self, x: Tensor) -> Tensor:
        """Return the free energy of each sample, up to one constant shared by all."""
        ...


@dataclass(frozen=True)
class Estimate:
    """A number with its uncertainty: `value ± error` (one standard error), inside `[lower, upper]`.

    `kind` says where it comes from: `"exact"`, `"ais"`, `"reverse-ais"`, `"sandwich"`. `ess` is the effective sample
    size of the weights behind it. `trusted` is False when the method itself says that the number should not be relied
    on, and `note` says why. The numbers may be tensors, one entry a sample; `mean()` averages them.

    >>> print(Estimate(-85.31, 0.04, -85.5, -85.2, "sandwich"))
    -85.310 ± 0.040 [-85.500, -85.200] (sandwich)
    """

    value: Any
    error: Any
    lower: Any
    upper: Any
    kind: str
    ess: float | None = None
    trusted: bool = True
    note: str = ""

    def mean(self) -> Estimate:
        """Return the average over the samples; their common error stays what it is."""
        numbers = (self.value, self.error, self.lower, self.upper)
        value, error, lower, upper = (torch.as_tensor(n, dtype=torch.float64).mean().item() for n in numbers)
        return replace(self, value=value, error=error, lower=lower, upper=upper)

    def __str__(self) -> str:
        if isinstance(self.value, Tensor):
            return f"{tuple(self.value.shape)} values, mean {self.mean()}"
        if self.kind == "exact":
            return f"{self.value:.10g} (exact)"
        digits = min(6, max(2, 1 - math.floor(math.log10(self.error)))) if self.error > 0 else 2
        numbers = (
            f"{self.value:.{digits}f} ± {self.error:.{digits}f} [{self.lower:.{digits}f}, {self.upper:.{digits}f}]"
        )
        return f"{numbers} ({self.kind})" + ("" if self.trusted else f", not trustworthy: {self.note}")


def check_shape(x: Tensor, shape: Iterable[int], *, name: str, layer: str, owner: object) -> None:
    """Raise unless `x` is a floating tensor of shape `(*batch, *shape)`, as the units `owner` of a layer need."""
    wanted = tuple(shape)
    if not isinstance(x, Tensor):
        raise TypeError(
            f"`{name}` must be a torch.Tensor. Got {type(x).__name__}. Convert it with torch.as_tensor({name})."
        )
    if not x.is_floating_point():
        raise TypeError(
            f"`{name}` must be a floating-point tensor to match {layer}={owner!r}. Got {x.dtype}. "
            f"Convert it with {name}.float()."
        )
    n = len(wanted)
    if x.ndim < n or tuple(x.shape[x.ndim - n :]) != wanted:
        inner = ", ".join(map(str, wanted))
        raise ValueError(
            f"`{name}` must have shape (*batch, {inner}) to match {layer}={owner!r}. Got {tuple(x.shape)}. "
            f"Reshape it, or build {layer} with the shape of your data."
        )


def check_dtype(x: Tensor, like: Tensor, *, name: str) -> None:
    """Raise unless `x` has the dtype of `like`, a parameter of the model."""
    if x.dtype != like.dtype:
        raise TypeError(
            f"`{name}` must be {like.dtype} to match the parameters of the model. Got {x.dtype}. "
            f"Convert it with {name}.to({like.dtype}), or the model with model.to({x.dtype})."
        )


def without_gradient(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function as `torch.no_grad()` does, at no cost where gradients are off: inner loops nest it."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        if not torch.is_grad_enabled():
            return function(*args, **kwargs)
        with torch.no_grad():
            return function(*args, **kwargs)

    return wrapper


@functools.cache
def keep_freed_memory() -> None:
    """Ask the C library to keep freed memory for the next tensor instead of giving it back page by page.

    A loop over large tensors otherwise spends a tenth of its time on page faults. It holds for the whole process, once
    asked for, and does nothing where the library is not glibc. The long loops (`fit`, `sample`, `ais`) ask for it.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    trim_threshold, mmap_threshold = -1, -3
    mallopt(trim_threshold, 2**30)
    mallopt(mmap_threshold, 2**30)


def weighted(x: Tensor, weight: Tensor | float) -> Tensor:
    """Return each sample of `x` times its weight: a number, or one value for each sample of the leading axes."""
    if isinstance(weight, Tensor) and weight.ndim:
        return x * weight.reshape(*weight.shape, *(1,) * (x.ndim - weight.ndim))
    return x * weight


def weighted_sum(x: Tensor, weight: Tensor | float, shape: tuple[int, ...]) -> Tensor:
    """Return `Σ_batch weight · x` of `x`, `(*batch, *shape)`, in the given shape; sizes of 1 are summed over too."""
    if isinstance(weight, Tensor) and weight.ndim:
        return weighted(x, weight).sum_to_size(shape)
    return x.sum_to_size(shape) * weight


def mean_difference(a: Tensor, b: Tensor) -> Tensor:
    """Return the mean of the rows of `a` less that of the rows of `b`."""
    difference = native.mean_difference(a, b)
    return a.mean(0).sub_(b.mean(0)) if difference is None else difference


def gradient(parameter: nn.Parameter) -> Tensor:
    """Return the gradient buffer of a parameter, made of zeros the first time."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad


@without_gradient
def add_product(parameter: nn.Parameter, left: Tensor, right: Tensor, scale: float) -> None:
    """Add `scale · left @ right` to the gradient of a matrix; the first product of an update makes it."""
    if parameter.grad is None:
        parameter.grad = torch.addmm(parameter, left, right, beta=0.0, alpha=scale)
    else:
        parameter.grad.addmm_(left, right, alpha=scale)


def softplus(x: Tensor) -> Tensor:
    """Return `log(1 + e^x)`, right to the last digit: PyTorch's default drops e^{-x} above x = 20."""
    return torch.nn.functional.softplus(x, threshold=40.0)


def draw_words(like: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw uniform 16-bit words in -32768..32767 in the shape of `like`, four from each 64-bit integer.

    They are laid out in memory as `like` is, so that what is computed from both runs straight through.
    """
    n = like.numel()
    wide = torch.empty(-(-n // 4), dtype=torch.int64, device=like.device)
    if not native.fill_words(wide, generator=generator):
        wide.random_(_LOWEST, None, generator=generator)
    words = wide.view(torch.int16)[:n]
    if like.ndim == 4 and like.is_contiguous(memory_format=torch.channels_last):
        return words.as_strided(like.shape, like.stride())
    return words.view(like.shape)


def draw_bernoulli(probability: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw 0/1 values with `P(1) = probability`, in the dtype of `probability`.

    With a uniform 16-bit word w in -2¹⁵..2¹⁵-1 for each element and a uniform u in [0, 1), `2⁻¹⁶(w + 2¹⁵ + u)` is
    uniform on [0, 1) to the resolution of the dtype, and is compared with p. Elements that differ only in their leading
    axes (a multiple of 1,024 places, where it is compiled) share u, which ties their last 2⁻¹⁶: a covariance below
    2⁻³⁴. A fourth of the cost of `torch.bernoulli`; compiled, 1 %.
    """
    drawn = native.bernoulli(probability, generator=generator)
    if drawn is not None:
        return drawn
    words = draw_words(probability, generator=generator)
    # The small gap below 2⁻¹⁶ keeps the sum under 1 after rounding: probability 1 always draws 1.
    width = 2.0**-16 - torch.finfo(probability.dtype).eps
    dither = probability.new_empty(probability.shape[-1:]).uniform_(0.5, 0.5 + width, generator=generator)
    return torch.add(dither, words, alpha=2.0**-16).lt_(probability)


def draw_bernoulli_of_field(field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw 0/1 values with `P(1) = σ(field)`, in the dtype of `field`: `draw_bernoulli` without a pass for the mean."""
    drawn = native.bernoulli_of_field(field, generator=generator)
    return draw_bernoulli(field.sigmoid(), generator=generator) if drawn is None else drawn


def draw_uniform(like: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw uniform values in [0, 1) with the shape, dtype and device of `like`."""
    drawn = torch.empty_like(like)
    if not native.fill_uniform(drawn, generator=generator):
        _as_stored(drawn).uniform_(generator=generator)
    return drawn


def draw_normal(like: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw standard normal values with the shape, dtype and device of `like`."""
    drawn = torch.empty_like(like)
    if not native.fill_normal(drawn, generator=generator):
        _as_stored(drawn).normal_(generator=generator)
    return drawn


def draw_step(
    x: Tensor, slope: Tensor, step: float, scale: float, *, generator: torch.Generator | None = None
) -> Tensor:
    """Draw `x + step · slope + scale · ε` with standard normal ε: a step of Langevin dynamics."""
    drawn = native.noisy_step(x, slope, step, scale, generator=generator)
    if drawn is None:
        drawn = torch.add(x, slope, alpha=step).add_(draw_normal(x, generator=generator), alpha=scale)
    return drawn


def _as_stored(x: Tensor) -> Tensor:
    """Return a view of x in the order of its memory: images with their channels innermost are drawn 7 times as fast."""
    return x.permute(0, 2, 3, 1) if x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last) else x


def draw_integers(
    n: int, shape: Iterable[int], *, generator: torch.Generator | None = None, device: torch.device | None = None
) -> Tensor:
    """Draw int64 values uniform in 0..n-1."""
    return torch.randint(n, tuple(shape), generator=generator, device=device)


def draw_permutation(n: int, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw a permutation of 0..n-1, int64, on the CPU."""
    return torch.randperm(n, generator=generator)


def draw_categorical(probability: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw one-hot vectors along the last axis with these probabilities, by inverting their cumulative sum.

    One uniform u in (0, 1] a vector picks the first class whose cumulative sum reaches u, so that a class of
    probability zero is never drawn. They need not add up to one, but must not all be zero.
    """
    cumulative = probability.cumsum(-1)
    u = 1 - draw_uniform(probability[..., :1], generator=generator)
    below = cumulative.lt_(u.mul_(cumulative[..., -1:]))  # 1 for the classes before the one that is drawn
    drawn = torch.empty_like(below)
    torch.sub(below[..., :-1], below[..., 1:], out=drawn[..., 1:])
    torch.sub(1.0, below[..., :1], out=drawn[..., :1])
    return drawn


def draw_binomial(n: int, probability: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw the number of successes in n trials, in the dtype of `probability`."""
    if probability.is_meta:  # PyTorch has no shape rule for binomial draws
        return torch.empty_like(probability)
    return torch.binomial(torch.full_like(probability, n), probability, generator=generator)


def draw_poisson(rate: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw Poisson counts with the given rates, in their dtype."""
    return torch.poisson(rate, generator=generator)


def as_state(x: Tensor | Mapping[str, Tensor], layer: str) -> State:
    """Return `x` as a state: a bare tensor is the value of `layer`."""
    return {layer: x} if isinstance(x, Tensor) else dict(x)
