"""Spins that remember: what Hopfield's network and its dense relative share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from harmonium.draws import draw_bernoulli_of_field, draw_permutation
from harmonium.models.machine import BoltzmannMachine
from harmonium.types import Values, as_tensor, without_gradient

DATA = "x"
"""The name of the one layer."""


class AssociativeMemory(BoltzmannMachine, ABC):
    """Spins `x_i = ±1` whose energy has its minima at stored patterns; recall goes down from a cue to the nearest.

    Unit i feels the local field `θ_i = ½ [E(x_i = -1) - E(x_i = 1)]` of the others. A subclass keeps some numbers
    `u = x·K`, linear in the spins, from which each θ_i follows: a flip then costs a row of K and no product.
    """

    @abstractmethod
    def directions(self) -> Tensor:
        """Return K, one row a unit."""

    @abstractmethod
    def local_fields(self, u: Tensor, x: Tensor, site: int | slice) -> Tensor:
        """Return `θ_i` of the units `site` from u, `(rows, m)`, and their spins x, `(rows,)` or `(rows, n)`."""

    @abstractmethod
    def rounding(self) -> Tensor:
        """Return how far rounding may take each `θ_i` from zero: a field below it counts as none."""

    @without_gradient
    def recall(
        self,
        x: Values,
        *,
        beta: float = math.inf,
        synchronous: bool = False,
        n_steps: int = 100,
        generator: torch.Generator | None = None,
        on_step: Callable[[int, Tensor], None] | None = None,
        on_unit: Callable[[int, Tensor], None] | None = None,
    ) -> Tensor:
        """Return where the network goes from cues `x`, `(*batch, *shape)`, within `n_steps` steps.

        In a step every unit is drawn once, `P(x_i = 1) = σ(2βθ_i)`: one after another in random order, so that no
        update raises the energy at zero temperature (`beta` infinite: `x_i = sign θ_i`, unchanged where θ_i = 0), or,
        `synchronous`, all at once, which may end in a cycle of two states. At zero temperature it stops where no unit
        changes. `on_step(i, x)` is called after each step, `on_unit(j, x)` after each draw of one unit, the j-th.

        >>> patterns = torch.tensor([[1.0, 1, 1, 1, -1, -1, -1, -1], [1, -1, 1, -1, 1, -1, 1, -1]])
        >>> Hopfield.store(patterns).recall(torch.tensor([-1.0, 1, 1, 1, -1, -1, -1, -1]))
        tensor([ 1.,  1.,  1.,  1., -1., -1., -1., -1.])
        """
        cue = as_tensor(x, like=self._some_parameter())
        check_spins(cue, "x")
        units = self.layer(DATA)
        like = self.directions()
        spins = units.encoded(cue, like=like).to(like)
        units.check_shape(spins, "x")
        if not (beta >= 0 and n_steps >= 1):
            raise ValueError(f"`beta` must not be negative and `n_steps` at least 1. Got {beta} and {n_steps}.")
        n = math.prod(units.shape)
        rows, rounding = spins.reshape(-1, n).clone(), self.rounding()
        for i in range(n_steps):
            before = rows.clone()
            u = rows @ like
            if synchronous:
                fields = self.local_fields(u, rows, slice(None))
                rows = _drawn(fields, rows, rounding, beta, generator)
            else:
                for k, j in enumerate(draw_permutation(n, generator=generator).tolist()):
                    old = rows[:, j]
                    new = _drawn(self.local_fields(u, old, j), old, rounding[j], beta, generator)
                    u.addr_(new - old, like[j])
                    rows[:, j] = new
                    if on_unit is not None:
                        on_unit(k, rows.reshape(spins.shape))
            if on_step is not None:
                on_step(i, rows.reshape(spins.shape))
            if beta == math.inf and torch.equal(rows, before):
                break
        return rows.reshape(spins.shape)


def _drawn(field: Tensor, old: Tensor, rounding: Tensor, beta: float, generator: torch.Generator | None) -> Tensor:
    """Return spins under a field at inverse temperature β; at β = ∞ its sign, or the old spin where there is none."""
    if beta == math.inf:
        return torch.where(field.abs() > rounding, field.sign(), old)
    return draw_bernoulli_of_field(2 * beta * field, generator=generator).mul_(2).sub_(1)


def check_spins(x: Tensor, name: str) -> None:
    """Raise unless all values are -1 and 1."""
    if x.is_meta or bool(((x == 1) | (x == -1)).all()):
        return
    hint = "Turn 0 and 1 into them with 2 * x - 1." if bool(((x == 0) | (x == 1)).all()) else "Threshold them first."
    low, high = x.amin().item(), x.amax().item()
    raise ValueError(f"`{name}` must hold -1 and 1 only. Got values from {low:g} to {high:g}. {hint}")


def as_patterns(patterns: Values) -> Tensor:
    """Return patterns `(n_patterns, *shape)` as floats, checked."""
    x = as_tensor(patterns)
    if x.ndim < 2 or not x.numel():
        raise ValueError(
            f"`patterns` must have shape (n_patterns, *shape). Got {tuple(x.shape)}. A single one is patterns[None]."
        )
    check_spins(x, "patterns")
    return x if x.is_floating_point() else x.to(torch.get_default_dtype())
