"""Hopfield's network with interactions of more than two spins."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from harmonium.couplings import Bias
from harmonium.couplings.base import Coupling, as_rows, flatten_layer, small_normal
from harmonium.models.associative_memory import DATA, AssociativeMemory, as_patterns
from harmonium.types import State, Values, gradient, weighted, without_gradient
from harmonium.units import Spin


class DenseHopfield(AssociativeMemory):
    """Spins with the energy `E(x) = -Σ_μ (w_μ·x)^k - bᵀx` of a polynomial of degree k (Krotov and Hopfield 2016).

    A coupling with the same layer at all of its k ends; k = 2 is Hopfield's network. It holds of the order of `N^{k-1}`
    patterns. Since `x_i² = 1`, a unit meets itself in powers above two, and its law given the others is that of the
    difference of two energies, their eq. 3: `θ_i = ½ Σ_μ [(u_μ + w_μi)^k - (u_μ - w_μi)^k] + b_i` with `u_μ` the
    overlap without unit i.
    """

    def __init__(self, *shape: int, n_patterns: int, order: int = 3, generator: torch.Generator | None = None) -> None:
        if order < 2:
            raise ValueError(f"`order` must be at least 2. Got {order}. 2 is Hopfield's network, 3 the next.")
        power = _Power(shape, n_patterns, order, generator=generator)
        super().__init__({DATA: Spin(*shape)}, [((DATA,) * order, power), ((DATA,), Bias(shape))])
        self.n_patterns, self.order = n_patterns, order

    @classmethod
    def store(cls, patterns: Values, order: int = 3) -> DenseHopfield:
        """Return a network that holds patterns `(n_patterns, *shape)` of -1 and 1: `E = -N Σ_μ (ξ_μ·x/N)^k`."""
        x = as_patterns(patterns)
        network = cls(*x.shape[1:], n_patterns=len(x), order=order).to(x)
        n = math.prod(x.shape[1:])
        with torch.no_grad():
            network.weight.copy_(x.flatten(1) * n ** (1 / order - 1))
        return network

    @property
    def weight(self) -> Tensor:
        """The patterns w, one a row."""
        return self.couplings[0].weight  # type: ignore[return-value]

    @property
    def bias(self) -> Tensor:
        """The bias of the units, b."""
        return self.couplings[1].bias  # type: ignore[return-value]

    def field(self, layer: str, state: State, *, partial: bool = False) -> Tensor:
        """Return the local fields `θ_i`, exact for each unit given all the others."""
        units = self.layer(layer)
        x = state[layer]
        rows = x.reshape(-1, math.prod(units.shape))
        return self.local_fields(rows @ self.directions(), rows, slice(None)).reshape(x.shape)

    def directions(self) -> Tensor:
        """Return the patterns: u are the overlaps with them."""
        return self.weight.t()

    def local_fields(self, u: Tensor, x: Tensor, site: int | slice) -> Tensor:
        """Return `θ_i = ½ Σ_μ [(u_μ - w_μi x_i + w_μi)^k - (u_μ - w_μi x_i - w_μi)^k] + b_i`."""
        w = self.weight[:, site]
        if isinstance(site, slice):
            u = u.unsqueeze(-1)
        rest = u - x.unsqueeze(1) * w
        difference = (rest + w) ** self.order - (rest - w) ** self.order
        return difference.sum(1) / 2 + self.bias.flatten()[site]

    def rounding(self) -> Tensor:
        """Return ε times the largest field that the patterns can put on each unit."""
        w = self.weight.abs()
        largest = self.order * (w * w.sum(1, keepdim=True) ** (self.order - 1)).sum(0)
        return torch.finfo(w.dtype).eps * (largest + self.bias.flatten().abs())


class _Power(Coupling):
    """The form `Φ(x₁, …, x_k) = Σ_μ Π_i (w_μ·x_i)`.

    Kept here: with one layer at all ends a unit meets itself, and `DenseHopfield` alone knows its law.
    """

    ties_itself = True

    def __init__(
        self, shape: tuple[int, ...], n_patterns: int, order: int, *, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.shape, self.n_patterns, self.order = shape, n_patterns, order
        self.weight = small_normal(n_patterns, math.prod(shape), generator=generator)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of the layer, k times."""
        return (self.shape,) * self.order

    def field(self, to: int, *others: Tensor) -> Tensor:
        """Return `Σ_μ w_μ Π_{i≠to} (w_μ·x_i)`."""
        return (self._product(others) @ self.weight).unflatten(-1, self.shape)

    def _product(self, xs: tuple[Tensor, ...] | list[Tensor]) -> Tensor:
        overlaps = [flatten_layer(x, self.shape) @ self.weight.t() for x in xs]
        return torch.stack(torch.broadcast_tensors(*overlaps)).prod(0)

    @without_gradient
    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        """Add `Σ weight · Σ_i x_i Π_{j≠i} (w_μ·x_j)`."""
        rows = [as_rows(x, self.shape) for x in xs]
        flat = weight.reshape(-1) if isinstance(weight, Tensor) else weight
        for i, x in enumerate(rows):
            rest = self._product(rows[:i] + rows[i + 1 :])
            gradient(self.weight).add_(weighted(rest, flat).t() @ x)
