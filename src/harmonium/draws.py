"""Random numbers: the one place where they are drawn, by compiled loops where there are any, else by PyTorch.

In a part (`workers`) a tensor that is drawn holds rows of a whole. The state of the generator moves as for the whole,
and each row gets the numbers that it has there: the compiled loops begin in the middle, PyTorch draws all and keeps
some. Permutations have no rows, and are the same for all workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from harmonium import native, workers
from harmonium.workers import Part

_LOWEST = torch.iinfo(torch.int64).min

HALF = (torch.float16, torch.bfloat16)
"""Types with too few bits to compare random numbers in: these are drawn in single precision."""


def draw_words(like: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw uniform 16-bit words in -32768..32767 in the shape of `like`, four from each 64-bit integer.

    They are laid out in memory as `like` is, so that what is computed from both runs straight through.
    """
    if (part := _part(like.shape)) is not None:
        return _of_whole(part, like, lambda x: draw_words(x, generator=generator))
    n = like.numel()
    wide = torch.empty(-(-n // 4), dtype=torch.int64, device=like.device)
    if not native.fill_words(wide, generator=generator):
        wide.random_(_LOWEST, None, generator=_there(like.device, generator))
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
    part = _part(probability.shape)
    drawn = native.bernoulli(probability, generator=generator)
    if drawn is not None:
        return drawn
    if probability.dtype in HALF:
        return draw_bernoulli(probability.float(), generator=generator).to(probability.dtype)
    words = draw_words(probability, generator=generator)
    # The small gap below 2⁻¹⁶ keeps the sum under 1 after rounding: probability 1 always draws 1.
    width = 2.0**-16 - torch.finfo(probability.dtype).eps
    is_row = part is not None and probability.ndim == part.axis + 1  # the last axis is that of the rows
    n_columns = (part.total,) if part is not None and is_row else probability.shape[-1:]
    own = _there(probability.device, generator)
    dither = probability.new_empty(n_columns).uniform_(0.5, 0.5 + width, generator=own)
    if part is not None and is_row:
        dither = dither.narrow(0, part.first, part.count)
    return torch.add(dither, words, alpha=2.0**-16).lt_(probability)


def draw_bernoulli_of_field(field: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw 0/1 values with `P(1) = σ(field)`, in the dtype of `field`: `draw_bernoulli` without a pass for the mean."""
    _part(field.shape)
    drawn = native.bernoulli_of_field(field, generator=generator)
    return draw_bernoulli(field.sigmoid(), generator=generator) if drawn is None else drawn


def draw_uniform(like: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw uniform values in [0, 1) with the shape, dtype and device of `like`."""
    part = _part(like.shape)
    drawn = torch.empty_like(like)
    if native.fill_uniform(drawn, generator=generator):
        return drawn
    if part is not None:
        return _of_whole(part, like, lambda x: draw_uniform(x, generator=generator))
    _as_stored(drawn).uniform_(generator=_there(like.device, generator))
    return drawn


def draw_normal(like: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw standard normal values with the shape, dtype and device of `like`."""
    part = _part(like.shape)
    drawn = torch.empty_like(like)
    if native.fill_normal(drawn, generator=generator):
        return drawn
    if part is not None:
        return _of_whole(part, like, lambda x: draw_normal(x, generator=generator))
    _as_stored(drawn).normal_(generator=_there(like.device, generator))
    return drawn


def draw_step(
    x: Tensor, slope: Tensor, step: float, scale: float, *, generator: torch.Generator | None = None
) -> Tensor:
    """Draw `x + step · slope + scale · ε` with standard normal ε: a step of Langevin dynamics."""
    _part(x.shape)
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
    size = list(shape)
    part = _part(size)
    own = generator if device is None else _there(device, generator)
    if part is None:
        return torch.randint(n, size, generator=own, device=device)
    size[part.axis] = part.total
    return part.take(torch.randint(n, size, generator=own, device=device)).contiguous()


def draw_permutation(n: int, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw a permutation of 0..n-1, int64, on the CPU."""
    return torch.randperm(n, generator=generator)


def draw_categorical(probability: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw one-hot vectors along the last axis with these probabilities, by inverting their cumulative sum.

    One uniform u in (0, 1] a vector picks the first class whose cumulative sum reaches u, so that a class of
    probability zero is never drawn. They need not add up to one, but must not all be zero.
    """
    if probability.dtype in HALF:
        return draw_categorical(probability.float(), generator=generator).to(probability.dtype)
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
    if (part := _part(probability.shape)) is not None:
        return _given_others(part, probability, lambda p: draw_binomial(n, p, generator=generator))
    own = _there(probability.device, generator)
    return torch.binomial(torch.full_like(probability, n), probability, generator=own)


def draw_poisson(rate: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
    """Draw Poisson counts with the given rates, in their dtype."""
    if rate.is_meta:  # PyTorch had no shape rule for Poisson draws before 2.5
        return torch.empty_like(rate)
    if (part := _part(rate.shape)) is not None:
        return _given_others(part, rate, lambda r: draw_poisson(r, generator=generator))
    return torch.poisson(rate, generator=_there(rate.device, generator))


def _there(device: torch.device, generator: torch.Generator | None) -> torch.Generator | None:
    """Return a generator on the device of what is drawn.

    One of the CPU, whose state is all that is saved, gives a seed to one of the device for each draw.
    """
    if generator is None or generator.device.type == device.type or device.type == "meta":
        return generator
    seed = int(torch.randint(2**62, (), generator=generator))
    return torch.Generator(device).manual_seed(seed)


def _part(shape: Sequence[int]) -> Part | None:
    """Return the part that is drawn for, None for a whole; raise if this tensor has not the rows of the part."""
    part = workers.current()
    if part is not None and (len(shape) <= part.axis or shape[part.axis] != part.count):
        raise ValueError(
            f"A tensor of shape {tuple(shape)} is drawn for rows {part.first} to {part.first + part.count} of "
            f"{part.total}, which should lie along axis {part.axis}. Say which axis holds the rows (workers.along), or "
            "that it is the same on all workers (workers.dividing(None))."
        )
    return part


def _of_whole(part: Part, like: Tensor, draw: Callable[[Tensor], Tensor]) -> Tensor:
    """Draw a whole and keep the rows of a part, both laid out in memory as `like` is: PyTorch draws in that order."""
    kept = torch.empty_like(like)
    order = sorted(range(kept.ndim), key=kept.stride, reverse=True)
    sizes = [part.total if axis == part.axis else kept.shape[axis] for axis in order]
    everyone = torch.empty(sizes, dtype=like.dtype, device=like.device).permute(
        [order.index(i) for i in range(kept.ndim)]
    )
    with workers.dividing(None):
        drawn = draw(everyone)
    return kept.to(drawn.dtype).copy_(part.take(drawn))


def _given_others(part: Part, x: Tensor, draw: Callable[[Tensor], Tensor]) -> Tensor:
    """Draw where PyTorch takes as many numbers for a row as its value asks for: with the rows of all workers."""
    with workers.dividing(None):
        everyone = x if part.repeated else workers.gather(x, axis=part.axis)
        return part.take(draw(everyone)).contiguous()
