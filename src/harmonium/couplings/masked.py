"""A coupling that meets only the units that are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor, nn

from harmonium.couplings.base import Coupling, Shapes
from harmonium.couplings.bias import Bias
from harmonium.couplings.dense import Dense
from harmonium.types import without_gradient


class Masked(Coupling):
    """The form `Φ'(m, x, …) = Φ(m∘xS, …)` of a coupling Φ: unit i of x counts `m_i` times, not at all where it is 0.

    m is one number for each vector of the layer x, which has two axes, such as whether an item was rated. S, `scores`,
    turns the entries of each vector into those that Φ sees; without it they are the same. A rating that is not there
    then feels no field and puts none on others: summed out, it is a constant.

    >>> ratings = torch.eye(5)[torch.tensor([4, 2])]
    >>> form = Masked(Bias((2, 5)))
    >>> with torch.no_grad():
    ...     _ = form.inner.bias.copy_(torch.arange(10.0).reshape(2, 5))
    >>> form(torch.tensor([1.0, 0.0]), ratings).item(), form(torch.tensor([1.0, 1.0]), ratings).item()
    (4.0, 11.0)
    """

    def __init__(self, inner: Coupling, scores: Tensor | Sequence[Sequence[float]] | None = None) -> None:
        super().__init__()
        self.inner = inner
        self.scores: Tensor | None
        self.register_buffer("scores", None if scores is None else torch.as_tensor(scores))

    @classmethod
    def examples(cls) -> list[tuple[Self, Shapes]]:
        """Return small ones with the shapes of their layers."""
        scores = torch.tensor([[-1.0, 1.0], [0.0, -2.0], [1.0, 1.0]])
        return [
            (cls(Bias((4, 3))), ((4,), (4, 3))),
            (cls(Dense((4, 3), 2)), ((4,), (4, 3), (2,))),
            (cls(Dense((4, 2), 2), scores), ((4,), (4, 3), (2,))),
        ]

    @property
    def shapes(self) -> tuple[tuple[int, ...] | None, ...]:
        """The shape of the mask, and those of the layers of the coupling."""
        first, *others = self.inner.shapes
        if first is None or len(first) != 2:
            raise ValueError(f"Masked needs a coupling whose first layer has two axes. Got {self.inner!r}.")
        n, width = first
        return (n,), (n, width if self.scores is None else len(self.scores)), *others

    def seen(self, mask: Tensor, x: Tensor) -> Tensor:
        """Return `m∘xS`: what the coupling sees of the layer."""
        return mask.unsqueeze(-1) * (x if self.scores is None else x @ self.scores)

    def field(self, to: int, *others: Tensor) -> Tensor:
        """Return `(xS)·∂Φ` on the mask, `m∘∂Φ Sᵀ` on x, `∂Φ` at what is seen on the other layers."""
        if to > 1:
            return self.inner.field(to - 1, self.seen(others[0], others[1]), *others[2:])
        from_inner = self.inner.field(0, *others[1:])
        if self.scores is not None:
            from_inner = from_inner @ self.scores.t()
        return (from_inner * others[0]).sum(-1) if to == 0 else from_inner * others[0].unsqueeze(-1)

    @without_gradient
    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        """Add the gradient of the coupling at what is seen."""
        self.inner.accumulate_grad(weight, self.seen(xs[0], xs[1]), *xs[2:])

    def weights(self) -> list[nn.Parameter]:
        """Return those of the coupling."""
        return self.inner.weights()

    def fans(self) -> tuple[int, int]:
        """Return those of the coupling."""
        return self.inner.fans()
