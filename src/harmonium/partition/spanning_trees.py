"""Trees that cover a graph."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.partition.pairwise import Pairwise


@dataclass(frozen=True)
class Trees:
    """A tree (a forest, where the graph falls apart) for each unit of a graph, each grown from it breadth first.

    `levels` go from the leaves to the roots; each is `(n, 4)`: the tree, the child, its parent, and the number of the
    edge. `appearance` is the share of the trees that hold each edge.
    """

    n_trees: int
    levels: list[Tensor]
    appearance: Tensor


def spanning_trees(graph: Pairwise) -> Trees:
    """Return one tree for each unit: its neighbors first, then theirs, parents taken in turn.

    In a complete graph they are its stars; in an RBM, a star and the rest of its layer spread evenly over the other.
    Every edge is in the trees of its two ends at least, and all are used about equally often. In a tree they are the
    graph itself.
    """
    n = graph.n
    number = torch.full((n, n), -1, dtype=torch.int64)
    number[graph.ends[:, 0], graph.ends[:, 1]] = number[graph.ends[:, 1], graph.ends[:, 0]] = torch.arange(
        len(graph.ends)
    )
    tied = number >= 0
    levels: list[list[Tensor]] = []
    for root in range(n):
        frontier, seen, depth = torch.tensor([root]), torch.zeros(n, dtype=torch.bool), 0
        seen[root] = True
        while not bool(seen.all()):
            reached = torch.nonzero(tied[frontier].any(0) & ~seen).flatten()
            if not len(reached):  # the next part of the graph, if there is one
                frontier, depth = torch.nonzero(~seen)[:1].flatten(), 0
                seen[frontier] = True
                continue
            possible = tied[reached][:, frontier].long().cumsum(1)
            turn = (root + torch.arange(len(reached))) % possible[:, -1]
            parent = frontier[(possible > turn[:, None]).long().argmax(1)]
            rows = torch.stack([torch.full_like(reached, root), reached, parent, number[reached, parent]], 1)
            while len(levels) <= depth:
                levels.append([])
            levels[depth].append(rows)
            seen[reached] = True
            frontier, depth = reached, depth + 1
    merged = [torch.cat(rows) for rows in reversed(levels)]
    used = torch.cat([rows[:, 3] for rows in merged]) if merged else torch.zeros(0, dtype=torch.int64)
    return Trees(n, merged, torch.bincount(used, minlength=len(graph.ends)).double() / n)
