"""One verb for drawing from any model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.models.frozen import frozen
from harmonium.samplers.base import Info, Sampler, data_layer
from harmonium.samplers.gibbs import Gibbs
from harmonium.samplers.mala import MALA
from harmonium.types import EnergyModel, check_dtype, keep_freed_memory, without_gradient


@without_gradient
def sample(
    model: EnergyModel,
    n: int,
    *,
    sampler: Sampler | None = None,
    n_steps: int = 1000,
    given: Tensor | None = None,
    start: Tensor | None = None,
    generator: torch.Generator | None = None,
    on_step: Callable[[int, Info], None] | None = None,
) -> Tensor:
    """Draw `n` samples: the ends of `n` chains of `n_steps` steps, by Gibbs sampling unless told otherwise.

    `given` is one sample, or `n`, with NaN where the value is unknown: known units stay, the others are drawn given
    them, which fills in missing values and paints in images. `start` is where the chains begin, `n` samples; without
    it, where the model says. A network is in evaluation mode meanwhile, its parameters frozen, and gets both back.
    `on_step(i, info)` is called after each step.

    >>> rbm = RBM(Bernoulli(4), Bernoulli(2))
    >>> sample(rbm, 3, n_steps=10, given=torch.tensor([1.0, float("nan"), 0.0, float("nan")])).shape
    torch.Size([3, 4])
    """
    if n < 1 or n_steps < 1:
        raise ValueError(f"`n` and `n_steps` must be at least 1. Got n={n}, n_steps={n_steps}.")
    keep_freed_memory()
    if sampler is None:
        sampler = Gibbs() if isinstance(model, BoltzmannMachine) else MALA()
    x = starting_points(model, n, generator=generator) if start is None else start
    if len(x) != n:
        raise ValueError(f"`start` must hold one sample for each of the n={n} chains. Got {tuple(x.shape)}.")
    if given is not None:
        layer = data_layer(model)
        _check_given(model, given, x)
        known = ~given.isnan()
        x = torch.where(known, given, x)
        sampler = replace(sampler, clamp={**sampler.clamp, layer: known})
    with frozen(model):
        state = sampler.init(model, x, generator=generator)
        for i in range(n_steps):
            state, info = sampler.step(model, state, generator=generator)
            if on_step is not None:
                on_step(i, info)
        result = sampler.samples(model, state)
    if not result.is_meta and not bool(result.isfinite().all()):
        raise ValueError(
            f"The chains of {sampler!r} ran away to infinity or NaN. The model may have no normalizable law (unbounded "
            "units on both sides with large weights), or the steps are too large. Shrink the weights or the step size."
        )
    return result


def _check_given(model: EnergyModel, given: Tensor, x: Tensor) -> None:
    if isinstance(model, BoltzmannMachine):
        units = model.layer(model.data_layer)
        units.check_shape(given, "given")
        check_dtype(given, x, name="given")
        known = ~given.isnan()
        units.check_support(torch.where(known, given, x[:1].reshape(units.shape)), "given")
        units.check_known(known, "given")
    if given.shape not in (x.shape, x.shape[1:]):
        raise ValueError(
            f"`given` must be one sample, of shape {tuple(x.shape[1:])}, or n={len(x)} of them. "
            f"Got {tuple(given.shape)}. Give one, or call `sample` with as many samples as you give."
        )


def starting_points(model: EnergyModel, n: int, *, generator: torch.Generator | None = None) -> Tensor:
    """Return `n` points to start chains from: a machine's units under their biases, or the model's own `initial`."""
    if isinstance(model, BoltzmannMachine):
        return model.initial(n, generator=generator)[model.data_layer]
    initial = getattr(model, "initial", None)
    if initial is None:
        raise TypeError(
            f"{type(model).__name__} does not say where chains start. Give it a method initial(n, *, generator), "
            "or run a sampler from points of your own with sampler.init and sampler.step."
        )
    return initial(n, generator=generator)
