"""Deep belief networks are drawn from the top down."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from harmonium import workers
from harmonium.models import DBN
from harmonium.samplers.base import Info
from harmonium.samplers.gibbs import Gibbs
from harmonium.types import without_gradient


@without_gradient
def sample_from_top(
    dbn: DBN,
    n_samples: int,
    *,
    n_steps: int = 200,
    sample_down: bool = False,
    start: Tensor | None = None,
    generator: torch.Generator | None = None,
    on_step: Callable[[int, Info], None] | None = None,
) -> Tensor:
    """Draw data: `n_steps` of Gibbs sampling in the top machine, then down by means, or by draws (`sample_down`).

    By draws the result follows the law of the network as the chains converge; by means it is the expectation given the
    draw at the top, without the noise of the pixels. Chains start under the biases of the top machine, or at the level
    below the top of the data `start`, of which there are `n_samples`. `on_step(i, info)` is called after each step; the
    last draws one layer alone and has no info.

    >>> from harmonium.samplers.from_top import sample_from_top
    >>> sample_from_top(DBN([RBM(Bernoulli(6), Bernoulli(4))]), 5, n_steps=3).shape
    torch.Size([5, 6])
    """
    if n_samples < 1 or n_steps < 1:
        raise ValueError(f"`n_samples` and `n_steps` must be at least 1. Got {n_samples} and {n_steps}.")
    if start is not None and len(start) != n_samples:
        raise ValueError(f"`start` must have n_samples={n_samples} rows. Got {len(start)}.")
    part = workers.part_of(n_samples)
    if part is not None and not part.repeated:  # each worker draws its own, and all get all
        begin = None if start is None else part.take(start)
        with workers.dividing(part):
            return workers.gather(_draw(dbn, part.count, n_steps, sample_down, begin, generator, on_step))
    return _draw(dbn, n_samples, n_steps, sample_down, start, generator, on_step)


def _draw(
    dbn: DBN,
    n_samples: int,
    n_steps: int,
    sample_down: bool,
    start: Tensor | None,
    generator: torch.Generator | None,
    on_step: Callable[[int, Info], None] | None,
) -> Tensor:
    top, i = dbn[-1], len(dbn) - 1
    below, above = top.layers
    if start is None:
        state = top.initial(n_samples, generator=generator)
    else:
        v = dbn.enter(i, dbn.up(start, i))
        state = {below: v, above: dbn.draw_hidden(i, v, generator=generator)}
    gibbs = Gibbs()
    for step in range(n_steps - 1):
        state, info = gibbs.step(top, state, generator=generator)
        if on_step is not None:
            on_step(step, info)
    if sample_down:
        gibbs.draw_block(top, (below,), state, generator=generator)
    if on_step is not None:
        on_step(n_steps - 1, {})
    v = state[below] if sample_down else top.mean(below, state)
    return dbn.down(dbn.leave(i, v), i, sample_down, generator=generator)
