"""Maximum likelihood with no sampling at all, for machines small enough to be counted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from harmonium.draws import draw_uniform
from harmonium.learning.objectives.base import Case
from harmonium.learning.objectives.contrastive import Contrastive, draw_exactly, small_machine
from harmonium.models import BoltzmannMachine
from harmonium.models.enumeration import counted_layers
from harmonium.models.summation import configurations
from harmonium.types import EnergyModel, Filled, State

MAX_STATES = 2**16
"""The most states that are gone through in an update."""


@dataclass
class ExactLikelihood(Contrastive):
    """`-log p(x) = F(x) + log Z` (eq. 6.35 and 6.36), with Z by counting: the rule that all others stand in for.

    The fewest layers are gone through, up to 2¹⁶ states, and the others summed out: of an RBM the smaller side. The
    gradient is exact, `∂F(x) - Σ_s p(s) ∂F(s)`; where the machine has conditions, p is that of each row.

    >>> ExactLikelihood().loss(RBM(Bernoulli(2), Bernoulli(1)), torch.ones(1, 2)).shape
    torch.Size([])
    """

    @classmethod
    def examples(cls) -> list[Case]:
        """Return a small machine and its own law."""
        machine = small_machine()
        return [Case(lambda *, generator: cls(), machine, partial(draw_exactly, machine, layers=(machine.data_layer,)))]

    def check(self, model: nn.Module) -> None:
        """Raise unless the model is a machine that can be counted."""
        _counted(model)

    def negative_energy(
        self, model: BoltzmannMachine, observed: State, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return `-log Z`, the mean over the conditions of the rows where there are any."""
        return -(-_energies(_counted(model), observed)[1]).logsumexp(0).mean()

    def draw_negatives(self, model: EnergyModel, observed: State, *, generator: torch.Generator | None = None) -> State:
        """Draw as many states as the batch has rows, exactly: the layers that are counted."""
        machine = _counted(model)
        states, energies = _energies(machine, observed)
        drawn = _drawn(machine, observed, states, (-energies).softmax(0), generator)
        return drawn | {name: observed[name] for name in machine.given}

    def _negative_phase(
        self, model: BoltzmannMachine, positive: Filled, share: Tensor | float, generator: torch.Generator | None
    ) -> State:
        """Add `-Σ_s p(s) ∂F(s)`; return exact draws, which only those who look on use."""
        machine = _counted(model)
        states, energies = _energies(machine, positive.state)
        p = (-energies).softmax(0)
        conditions = {name: positive.state[name] for name in machine.given}
        whole = {name: value.expand(*p.shape, *machine.layer(name).shape) for name, value in states.items()}
        machine.accumulate_grad(whole | conditions, -p * share if conditions else -p)
        return machine.infer(_drawn(machine, positive.state, states, p, generator) | conditions)


def _counted(model: object) -> BoltzmannMachine:
    """Return the machine if its states can be counted; raise if not."""
    if not isinstance(model, BoltzmannMachine):
        raise TypeError(f"ExactLikelihood needs a Boltzmann machine. Got {type(model).__name__}. Use JointLikelihood.")
    layers, n = counted_layers(model)
    if not layers:
        raise TypeError(
            f"The units of layer {model.data_layer!r} are independent, and nothing is hidden: `initialize(model, x)` "
            "sets the biases to their maximum likelihood at once."
        )
    if n is None or n > MAX_STATES:
        size = "infinitely many" if n is None else f"{n:,}" if n < 1e9 else f"{n:.1e}"
        raise TypeError(
            f"ExactLikelihood goes through all states of layers {list(layers)}: {size}, more than {MAX_STATES:,}. "
            "Use PCD, or a machine with one small layer."
        )
    return model


def _energies(machine: BoltzmannMachine, observed: State) -> tuple[State, Tensor]:
    """Return all states of the counted layers, `(n_states, …)`, and their energies given the conditions of a batch."""
    conditions = {name: observed[name] for name in machine.given}
    states = configurations(machine, counted_layers(machine)[0], conditions)
    return states, machine.energy(states | conditions)


def _drawn(
    machine: BoltzmannMachine, observed: State, states: State, p: Tensor, generator: torch.Generator | None
) -> State:
    """Draw one state for each row by its probability: the first whose cumulative sum exceeds a uniform number."""
    n = machine.batch_shape(observed)[0]
    u = draw_uniform(p.new_empty(n, 1) if p.ndim > 1 else p.new_empty(n), generator=generator)
    index = torch.searchsorted(p.movedim(0, -1).cumsum(-1).contiguous(), u, right=True).reshape(n)
    flat = {name: value.reshape(len(p), *machine.layer(name).shape) for name, value in states.items()}
    return {name: value[index.clamp_max(len(p) - 1)] for name, value in flat.items()}
