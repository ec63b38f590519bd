"""Bethe's approximation of log Z: loopy belief propagation."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.partition.pairwise import Pairwise, pairwise
from harmonium.types import Estimate

TOLERANCE = 1e-12
"""The largest change of a log message, beside its size where that is above 1, at which belief propagation is done."""


@torch.no_grad()
def bethe(model: BoltzmannMachine, *, n_steps: int = 1000, damping: float = 0.5) -> Estimate:
    """Return Bethe's log Z at a fixed point of belief propagation (Yedidia, Freeman and Weiss 2005).

    Messages go both ways along each edge, `m_{i→j}(x_j) ∝ Σ_{x_i} e^{θ_i + θ_ij} Π_{k≠j} m_{k→i}(x_i)`, all at once and
    damped; the beliefs b that they leave give

        Σ_i ⟨θ_i, b_i⟩ + Σ_ij ⟨θ_ij, b_ij⟩ + Σ_ij H(b_ij) + Σ_i (1 - d_i) H(b_i)

    with d the number of edges of a unit. Where the graph is a tree this is log Z, guaranteed. Elsewhere it is an
    approximation of which nothing says how far off it is, nor on which side: it is never trusted there, and the note
    says whether the messages converged at all. Machines that are no sums over pairs raise `ValueError`.

    >>> print(bethe(RBM(Bernoulli(1), Bernoulli(3))).note)    # a star is a tree
    <BLANKLINE>
    """
    graph = pairwise(model)
    exact = is_forest(graph)
    log_beliefs, change = _propagated(graph, n_steps, 0.0 if exact else damping)
    value = graph.constant + _bethe_log_z(graph, *log_beliefs)
    if exact and change <= TOLERANCE:
        return Estimate(value, 0.0, value, value, "bethe", at_least=value, at_most=value)
    note = "the graph has loops: Bethe's log Z is an approximation, and nothing says how far off"
    if not change <= TOLERANCE:
        note = (
            f"belief propagation did not converge: after {n_steps} steps messages still change by {change:.1g}; {note}"
        )
    return Estimate(value, math.inf, -math.inf, math.inf, "bethe", trusted=False, note=note)


def is_forest(graph: Pairwise) -> bool:
    """Return whether the edges close no loop: there are as many as units less connected parts."""
    label = torch.arange(graph.n)
    for _ in range(graph.n):
        low = torch.minimum(label[graph.ends[:, 0]], label[graph.ends[:, 1]])
        new = label.scatter_reduce(0, graph.ends.flatten(), low.repeat_interleave(2), "amin")
        if bool((new == label).all()):
            break
        label = new
    return len(graph.ends) == graph.n - len(label.unique())


def _propagated(graph: Pairwise, n_steps: int, damping: float) -> tuple[tuple[Tensor, Tensor], float]:
    """Return the log beliefs of units and edges after at most `n_steps` rounds, and the last change of a message."""
    n, m, k = graph.n, len(graph.ends), graph.node.shape[1]
    source = torch.cat([graph.ends[:, 0], graph.ends[:, 1]])
    target = torch.cat([graph.ends[:, 1], graph.ends[:, 0]])
    opposite = torch.cat([torch.arange(m) + m, torch.arange(m)])
    table = torch.cat([graph.edge, graph.edge.transpose(1, 2)])  # (source, target)
    message, change = torch.zeros(2 * m, k, dtype=torch.float64), 0.0
    for _ in range(max(n_steps, 2 * n if damping == 0 else 0)):
        inner = graph.node.index_add(0, target, message)[source] - message[opposite]
        new = (inner.unsqueeze(2) + table).logsumexp(1).log_softmax(1)
        change = ((new - message).abs() / message.abs().clamp_min(1.0)).max().item() if m else 0.0
        message = torch.lerp(new, message, damping)
        if change <= TOLERANCE:
            break
    unit = graph.node.index_add(0, target, message)
    inner = unit[source] - message[opposite]
    pair = inner[:m].unsqueeze(2) + inner[m:].unsqueeze(1) + graph.edge
    return (unit.log_softmax(1), pair.flatten(1).log_softmax(1).reshape(m, k, k)), change


def _bethe_log_z(graph: Pairwise, unit: Tensor, pair: Tensor) -> float:
    own = _expected(unit, graph.node) + (1 - graph.degrees().double()) * _expected(unit, -unit)
    tied = _expected(pair.flatten(1), (graph.edge - pair).flatten(1))
    return (own.sum() + tied.sum()).item()


def _expected(log_belief: Tensor, value: Tensor) -> Tensor:
    """Return the mean of `value` under each belief; states of no weight count for nothing."""
    return torch.where(log_belief.isfinite(), log_belief.exp() * value, 0.0).nan_to_num(0.0).sum(1)
