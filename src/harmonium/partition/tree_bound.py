"""An upper bound of log Z that holds whatever any chain does: a mixture of trees."""

from __future__ import annotations

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.partition.pairwise import Pairwise, pairwise
from harmonium.partition.spanning_trees import Trees, spanning_trees


def tree_bound(model: BoltzmannMachine, *, n_steps: int = 40) -> float:
    """Return `(1/n) Σ_T log Z_T ≥ log Z`, the tree-reweighted bound (Wainwright, Jaakkola and Willsky 2005, eq. 10).

    log Z is convex in the parameters θ, so that trees whose parameters average to θ bound it, each summed exactly. Here
    tree T has `θ_i - Σ_j λ_ij` on its units and `(θ_ij + λ_ij + λ_ji)/ρ_ij` on its edges, where ρ_ij is the share of
    the trees with edge ij and λ_ij is any function of x_i: these move weight between units and edges and leave the
    average as it is. So the bound holds for every λ, converged or not; only rounding can break it. It is convex in λ,
    and `n_steps` iterations of L-BFGS make it small. It is exact on trees. Machines that are no sums over pairs raise
    `ValueError` (see `pairwise`).

    >>> rbm = RBM(Bernoulli(3), Bernoulli(2))
    >>> tree_bound(rbm) >= exact_log_z(rbm).value
    True
    """
    graph = pairwise(model)
    return graph.constant + trees_log_z(graph, n_steps=n_steps)


def trees_log_z(graph: Pairwise, *, n_steps: int = 40) -> float:
    """Return the bound for a graph of units and pairs, without its constant."""
    trees = spanning_trees(graph)
    moved = _centered(graph).requires_grad_()
    best = [float("inf")]

    def evaluate() -> Tensor:
        optimizer.zero_grad()
        with torch.enable_grad():
            value = mixture_log_z(graph, trees, moved)
            value.backward()
        best.append(value.item() if bool(value.isfinite()) else float("inf"))
        return value.detach()

    if not len(graph.ends):
        return graph.node.logsumexp(1).sum().item()
    optimizer = torch.optim.LBFGS(
        [moved],
        max_iter=n_steps,
        history_size=20,
        tolerance_grad=1e-7,
        tolerance_change=1e-10,
        line_search_fn="strong_wolfe",
    )
    optimizer.step(evaluate)
    return min(best)


def mixture_log_z(graph: Pairwise, trees: Trees, moved: Tensor) -> Tensor:
    """Return the mean over the trees of log Z_T, for any λ: `moved`, `(n_edges, 2, k)`, for both ends of each edge."""
    k = graph.node.shape[1]
    node = graph.node - torch.zeros_like(graph.node).index_add(0, graph.ends.flatten(), moved.flatten(0, 1))
    edge = (graph.edge + moved[:, 0, :, None] + moved[:, 1, None, :]) / trees.appearance[:, None, None]
    both = torch.cat([edge, edge.transpose(1, 2)])  # (child, parent) for either orientation
    total = node.repeat(trees.n_trees, 1)
    for rows in trees.levels:
        tree, child, parent, number = rows.unbind(1)
        flipped = (graph.ends[number, 0] != child).long()
        message = (total[tree * graph.n + child].unsqueeze(2) + both[number + flipped * len(edge)]).logsumexp(1)
        total = total.index_add(0, tree * graph.n + parent, message)
        held = torch.ones(len(total), dtype=torch.bool)
        held[tree * graph.n + child] = False
        total = torch.where(held[:, None], total, _spent(k))
    return total.logsumexp(1).sum() / trees.n_trees


def _spent(k: int) -> Tensor:
    """Return the weights of a unit that has told its parent all: their log-sum is 0."""
    return torch.cat([torch.zeros(1, dtype=torch.float64), torch.full((k - 1,), -torch.inf, dtype=torch.float64)])


def _centered(graph: Pairwise, n_steps: int = 50) -> Tensor:
    """Return the λ at which an edge holds only what its ends do not know of each other, under mean field."""
    mean = graph.node.softmax(1)
    first, second = graph.ends.unbind(1)
    for _ in range(n_steps):
        on_first = torch.einsum("est,et->es", graph.edge, mean[second])
        on_second = torch.einsum("est,es->et", graph.edge, mean[first])
        field = graph.node.index_add(0, first, on_first).index_add(0, second, on_second)
        mean = (mean + field.softmax(1)) / 2
    on_first = torch.einsum("est,et->es", graph.edge, mean[second])
    on_second = torch.einsum("est,es->et", graph.edge, mean[first])
    common = torch.einsum("es,es->e", on_first, mean[first]) / 2
    return torch.stack([common[:, None] - on_first, common[:, None] - on_second], 1)
