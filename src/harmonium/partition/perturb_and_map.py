"""Bounds of log Z from the most probable states of perturbed machines."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.draws import draw_uniform
from harmonium.models import BoltzmannMachine
from harmonium.partition.pairwise import Pairwise, pairwise
from harmonium.types import Estimate

EULER = 0.5772156649015329
"""The mean of Gumbel's law before it is taken away."""

MAX_COUNTED = 2**14
"""The most states of one side that are gone through for a most probable state."""


@torch.no_grad()
def perturb_and_map(
    model: BoltzmannMachine, *, n_samples: int = 200, n_starts: int = 16, generator: torch.Generator | None = None
) -> Estimate:
    """Return Gumbel's upper bound of log Z with its lower one (Hazan and Jaakkola 2012; Hazan, Maji and Jaakkola 2013).

    With `γ_i(x_i)` independent Gumbel noise of mean 0 for each state of each of the n units,

        E max_x [w(x) + (1/n) Σ_i γ_i(x_i)]  ≤  log Z  ≤  E max_x [w(x) + Σ_i γ_i(x_i)],  w the log weight of x.

    The value is the mean of the right side over `n_samples` draws, an estimate that errs upward;
    `upper` is it and 3 standard errors, `lower` the left side less 3 of its own. Both are statistical: they bound log Z
    in expectation only. That needs the maximum itself, found where one side of the graph can be gone through, up to 2¹⁴
    states. Elsewhere the best of `n_starts` local searches stands for it, too small where they miss it: the lower bound
    still holds, the upper one does not, and the estimate is not trusted.
    """
    graph = pairwise(model)
    counted = _counted_side(graph)
    uniform = draw_uniform(torch.empty(2, n_samples, *graph.node.shape, dtype=torch.float64), generator=generator)
    gumbel = -(-uniform.clamp(1e-300, 1 - 1e-16).log()).log() - EULER
    above = graph.constant + _maxima(graph, graph.node + gumbel[0], counted, n_starts, generator)
    below = graph.constant + _maxima(graph, graph.node + gumbel[1] / graph.n, counted, n_starts, generator)
    error, spread = (x.std().item() / math.sqrt(n_samples) for x in (above, below))
    value, lower = above.mean().item(), below.mean().item() - 3 * spread
    if counted is not None:
        return Estimate(value, error, lower, value + 3 * error, "perturb-and-map")
    note = "the most probable states come from local searches, which may miss them: there is no upper bound"
    return Estimate(value, error, lower, math.inf, "perturb-and-map", trusted=False, note=note)


def _counted_side(graph: Pairwise) -> Tensor | None:
    """Return units whose states can be gone through so that no edge is left between the others, if there are such."""
    sizes = graph.node.isfinite().sum(1)
    for side in (_cover(graph, reverse=False), _cover(graph, reverse=True)):
        if sizes[side].double().log2().sum().item() <= math.log2(MAX_COUNTED):
            return side
    return None


def _cover(graph: Pairwise, *, reverse: bool) -> Tensor:
    """Return units that hold one end of each edge, all but a set without edges that is grown greedily."""
    tied = torch.zeros(graph.n, graph.n, dtype=torch.bool)
    tied[graph.ends[:, 0], graph.ends[:, 1]] = tied[graph.ends[:, 1], graph.ends[:, 0]] = True
    free = torch.ones(graph.n, dtype=torch.bool)
    chosen = torch.zeros(graph.n, dtype=torch.bool)
    for i in reversed(range(graph.n)) if reverse else range(graph.n):
        if free[i]:
            chosen[i] = True
            free &= ~tied[i]
    return torch.nonzero(~chosen).flatten()


def _maxima(
    graph: Pairwise, node: Tensor, counted: Tensor | None, n_starts: int, generator: torch.Generator | None
) -> Tensor:
    """Return `max_x [Σ node + Σ edge]` for each of many node tables `(n_samples, n, k)`."""
    if counted is not None and not len(counted):  # no edges
        return node.amax(2).sum(1)
    n, k = graph.n, graph.node.shape[1]
    table = torch.zeros(n, k, n, k, dtype=torch.float64)
    first, second = graph.ends.unbind(1)
    table[first, :, second] = graph.edge
    table[second, :, first] = graph.edge.transpose(1, 2)
    flat = table.reshape(n * k, n * k)
    if counted is None:
        return torch.stack([_searched(own, flat, n_starts, generator) for own in node])
    rest = torch.tensor([i for i in range(n) if i not in set(counted.tolist())], dtype=torch.int64)
    possible = [torch.nonzero(graph.node[i].isfinite()).flatten() for i in counted]
    choices = torch.cartesian_prod(*possible).reshape(-1, len(counted))
    hot = torch.nn.functional.one_hot(choices, k).double()  # (n_states, n_counted, k)
    inside = table[counted][:, :, counted].reshape(len(counted) * k, -1)
    states = hot.flatten(1)
    among = ((states @ inside) * states).sum(1) / 2
    onto = (states @ table[counted][:, :, rest].reshape(len(counted) * k, -1)).unflatten(1, (len(rest), k))
    best = []
    for own in node:
        here = (hot * own[counted].nan_to_num(neginf=0.0)).sum((1, 2)) + among
        best.append((here + (onto + own[rest]).amax(2).sum(1)).max())
    return torch.stack(best)


def _searched(own: Tensor, table: Tensor, n_starts: int, generator: torch.Generator | None) -> Tensor:
    """Return the best weight that improving one unit at a time finds from random starts."""
    n, k = own.shape
    noise = draw_uniform(torch.empty(n_starts, n, k, dtype=torch.float64), generator=generator)
    state = torch.nn.functional.one_hot((noise + own.isfinite() - 1.0).argmax(2), k).double()
    safe = own.nan_to_num(neginf=-1e300)
    weight = torch.full((n_starts,), -torch.inf, dtype=torch.float64)
    while True:
        for i in range(n):
            field = safe[i] + state.flatten(1) @ table[:, i * k : (i + 1) * k]
            state[:, i] = torch.nn.functional.one_hot(field.argmax(1), k).double()
        flat = state.flatten(1)
        new = (flat @ safe.flatten()) + ((flat @ table) * flat).sum(1) / 2
        if bool((new <= weight + 1e-9).all()):
            return torch.maximum(new, weight).max()
        weight = new
