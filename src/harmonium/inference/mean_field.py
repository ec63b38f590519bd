"""Hidden layers by a law that factorizes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.inference.base import Inference
from harmonium.models import BoltzmannMachine
from harmonium.types import Filled, State, without_gradient


@dataclass(frozen=True)
class MeanField(Inference):
    """The best factorized law `q(h) = Π q_l`, each layer under its own field: `θ_l = field(means of the others)`.

    Layers are updated block by block, `θ ← damping · θ + (1 - damping) · field`, until no mean moves by more than
    `tolerance`, `n_steps` rounds at most. Undamped, every update of a block raises the evidence lower bound
    `-F_q = Σ Φ(x, m) + Σ log μ(x) + Σ_hidden [A(θ) - θ·E s] ≤ -F(x)` (Salakhutdinov and Hinton 2009, eq. 8), tight
    where the hidden layers are independent. A layer tied to itself is updated all at once and needs some damping.

    >>> MeanField(n_steps=10)
    MeanField(n_steps=10, damping=0.0, tolerance=0.0001)
    """

    n_steps: int = 30
    damping: float = 0.0
    tolerance: float = 1e-4

    def __post_init__(self) -> None:
        if self.n_steps < 1 or not 0 <= self.damping < 1 or not self.tolerance >= 0:
            raise ValueError(
                "`n_steps` must be at least 1, `damping` in [0, 1) and `tolerance` not negative. "
                f"Got {self.n_steps}, {self.damping} and {self.tolerance}."
            )

    @without_gradient
    def fixed_point(self, machine: BoltzmannMachine, observed: State) -> Filled:
        """Return the state with hidden layers at their means under q, and their fields θ."""
        state, fields = dict(observed), {}
        for name in machine.layers:
            units = machine.layer(name)
            if name not in observed and machine.ties(name, name) and units.sites != units.shape:
                raise TypeError(
                    f"MeanField cannot fill in layer {name!r}: its one-hot vectors are tied to each other, and entries "
                    "of one vector would act on themselves. Use ClampedChains()."
                )
        hidden = [tuple(n for n in block if n not in observed) for block in machine.blocks()]
        constant = _constant_fields(machine, observed)
        for block in reversed(hidden):  # first means from what is observed, couplings among hidden layers off
            for name in block:
                fields[name] = machine.field(name, state, partial=True).clone()
                state[name] = machine.layer(name).mean(fields[name])
        for _ in range(self.n_steps):
            moved = 0.0
            for block in hidden:
                for name in block:
                    new = _field(machine, name, state, observed, constant)
                    fields[name] = torch.lerp(new, fields[name], self.damping) if self.damping else new
                    mean = machine.layer(name).mean(fields[name])
                    moved = max(moved, (mean - state[name]).abs().amax().item() if mean.numel() else 0.0)
                    state[name] = mean
            if moved <= self.tolerance:
                break
        return Filled(state, fields)

    def accumulate_grad(
        self,
        machine: BoltzmannMachine,
        observed: State,
        weight: Tensor | float,
        *,
        index: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Filled:
        """Add the gradient of the bound, q held at its fixed point."""
        filled = self.fixed_point(machine, machine.state(observed))
        with torch.no_grad():
            machine.add_gradient(filled.state, weight, observed)
        return filled

    def free_energy(self, machine: BoltzmannMachine, observed: State) -> Tensor:
        """Return the bound `F_q ≥ F`, differentiable in the parameters with q held constant."""
        present = machine.state(observed)
        state, fields = self.fixed_point(machine, present)
        total = -machine.interaction(state)
        for name in machine.layers:
            units = machine.layer(name)
            if name in present:
                total = total - units.total(units.log_base(state[name]))
            else:
                field = fields[name]
                inner = (field * units.statistic(state[name])).flatten(field.ndim - len(units.shape)).sum(-1)
                total = total - units.total(units.log_partition(field)) + inner
        return total


def _constant_fields(machine: BoltzmannMachine, observed: State) -> State:
    """Return the field that the observed layers put on each hidden one, where no coupling ties it to more than one.

    It does not change while means are sought, and its products with the data are the largest.
    """
    fields = {}
    for name in machine.layers:
        if name not in observed and all(len(others) < 2 for _, _, others in machine.graph.acting[name]):
            fields[name] = machine.field(name, observed, partial=True) - machine.field(name, {}, partial=True)
    return fields


def _field(machine: BoltzmannMachine, name: str, state: State, observed: State, constant: State) -> Tensor:
    """Return the field on a hidden layer from the means of the others and what the observed ones put on it."""
    if name not in constant:
        return machine.field(name, state)
    others = {other: value for other, value in state.items() if other not in observed and machine.ties(name, other)}
    return machine.field(name, others, partial=True) + constant[name]
