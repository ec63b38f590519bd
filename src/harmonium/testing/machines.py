"""Machines small enough to enumerate, and their exact laws."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from torch import Tensor

from harmonium.couplings import Bias, Dense, GroupBias, Subspace, Symmetric, ThirdOrder
from harmonium.draws import draw_categorical, draw_normal
from harmonium.models import DBM, RBM, BoltzmannMachine, ClassRBM, Conditioned, Tempered
from harmonium.models.graph import Term
from harmonium.testing.contract import ContractError, random_generator
from harmonium.types import State
from harmonium.units import (
    Bernoulli,
    Binomial,
    Categorical,
    Gaussian,
    MaxPooled,
    Mixed,
    Multinary,
    NReLU,
    Poisson,
    Spin,
    Units,
)

Machine = TypeVar("Machine", bound=BoltzmannMachine)

TINY_UNITS: dict[str, Callable[[], Units]] = {
    "Bernoulli": lambda: Bernoulli(4),
    "Spin": lambda: Spin(4),
    "Gaussian": lambda: Gaussian(2, initial_sigma=1.2),
    "Categorical": lambda: Categorical(2, 4),
    "Binomial": lambda: Binomial(2, levels=3),
    "Multinary": lambda: Multinary(2, levels=3, exact=True),
    "NReLU": lambda: NReLU(2),
    "Poisson": lambda: Poisson(2),
    "Mixed": lambda: Mixed(Bernoulli(1), Gaussian(1), Categorical(1, 3)),
}
"""A maker of a layer of each kind that has a likelihood, of a few units."""

_UNBOUNDED = ("Gaussian", "NReLU", "Poisson", "Mixed")


def tiny_rbm(visible: str, hidden: str, *, generator: torch.Generator | None = None) -> RBM:
    """Return an RBM in float64 of two layers of `TINY_UNITS` with random parameters.

    >>> tiny_rbm("Spin", "Gaussian").weight.shape
    torch.Size([4, 2])
    """
    return scatter(RBM(TINY_UNITS[visible](), TINY_UNITS[hidden]()), generator=generator)


def tiny_boltzmann_machine(
    kind: str = "Spin", *, scale: float = 0.3, generator: torch.Generator | None = None
) -> BoltzmannMachine:
    """Return a machine of one layer tied to itself, in float64 with random parameters."""
    units = TINY_UNITS[kind]()
    terms: list[Term] = [(("x", "x"), Symmetric(units.shape)), (("x",), Bias(units.shape))]
    return scatter(BoltzmannMachine({"x": units}, terms), scale=scale, generator=generator)


def tiny_deep_machine(*, generator: torch.Generator | None = None) -> BoltzmannMachine:
    """Return a machine of three layers in a row, in float64 with random parameters."""
    units = {"visible": Bernoulli(3), "middle": Spin(2), "top": Bernoulli(2)}
    terms: list[Term] = [(("visible", "middle"), Dense(3, 2)), (("middle", "top"), Dense(2, 2))]
    return scatter(BoltzmannMachine(units, [*terms, *_biases(units)]), generator=generator)


def tiny_dbm(*, generator: torch.Generator | None = None) -> DBM:
    """Return a deep Boltzmann machine with three hidden layers, in float64 with random parameters."""
    return scatter(DBM(Bernoulli(4), Bernoulli(3), Bernoulli(2), Bernoulli(2)), generator=generator)


def tiny_gated_machine(*, generator: torch.Generator | None = None) -> BoltzmannMachine:
    """Return a machine of three layers tied all at once, in float64 with random parameters."""
    units = {"visible": Bernoulli(3), "gate": Bernoulli(2), "slab": Gaussian(2)}
    terms: list[Term] = [(("visible", "gate", "slab"), ThirdOrder(3, 2, 2))]
    return scatter(BoltzmannMachine(units, [*terms, *_biases(units)]), generator=generator)


def tiny_labeled_rbm(*, generator: torch.Generator | None = None) -> ClassRBM:
    """Return an RBM with a label beside its data, in float64 with random parameters."""
    return scatter(ClassRBM(Bernoulli(3), Bernoulli(2), 3), generator=generator)


def tiny_lateral_rbm(*, generator: torch.Generator | None = None) -> BoltzmannMachine:
    """Return an RBM whose hidden units are tied to each other, in float64 with random parameters."""
    units = {"visible": Bernoulli(3), "hidden": Spin(3)}
    terms: list[Term] = [(("visible", "hidden"), Dense(3, 3)), (("hidden", "hidden"), Symmetric(3))]
    return scatter(BoltzmannMachine(units, [*terms, *_biases(units)]), generator=generator)


def tiny_subspace_machine(*, generator: torch.Generator | None = None) -> BoltzmannMachine:
    """Return a machine of gates over groups of units, in float64 with random parameters."""
    units = {"visible": Bernoulli(2), "gate": Bernoulli(2), "group": Bernoulli(2, 2)}
    terms: list[Term] = [(("visible", "gate", "group"), Subspace(2, 2, 2)), (("gate", "group"), GroupBias(2, 2))]
    return scatter(BoltzmannMachine(units, [*terms, *_biases(units)[:2]]), generator=generator)


def tiny_conditional_rbm(*, generator: torch.Generator | None = None) -> BoltzmannMachine:
    """Return an RBM with a condition that acts on both of its layers, in float64 with random parameters."""
    units = {"past": Gaussian(2), "visible": Bernoulli(3), "hidden": Bernoulli(2)}
    terms: list[Term] = [
        (("visible", "hidden"), Dense(3, 2)),
        (("past", "visible"), Dense(2, 3)),
        (("past", "hidden"), Dense(2, 2)),
    ]
    return scatter(BoltzmannMachine(units, [*terms, *_biases(units)[1:]], given=["past"]), generator=generator)


def _biases(units: Mapping[str, Units]) -> list[Term]:
    return [((name,), Bias(layer.shape)) for name, layer in units.items()]


ALL_MACHINES: dict[str, Callable[[], BoltzmannMachine]] = {
    **{
        f"{visible}-{hidden}": lambda visible=visible, hidden=hidden: tiny_rbm(visible, hidden)  # type: ignore[misc]
        for visible, hidden in itertools.product(TINY_UNITS, TINY_UNITS)
        if not (visible in _UNBOUNDED and hidden in _UNBOUNDED)
    },
    "Boltzmann": tiny_boltzmann_machine,
    "Potts": lambda: tiny_boltzmann_machine("Categorical", scale=0.8),
    "pooled": lambda: scatter(RBM(MaxPooled(1, 2, 4, block=2), Bernoulli(2))),
    "DBM": tiny_dbm,
    "deep": tiny_deep_machine,
    "gated": tiny_gated_machine,
    "labeled": tiny_labeled_rbm,
    "lateral": tiny_lateral_rbm,
    "subspace": tiny_subspace_machine,
    "conditional": lambda: Conditioned(tiny_conditional_rbm(), {"past": torch.tensor([0.7, -1.2]).double()}),
    "tempered": lambda: Tempered(tiny_rbm("Bernoulli", "Spin"), 0.4, torch.tensor([0.5, -0.5, 1.0, -1.0]).double()),
    "tempered Gaussian": lambda: Tempered(tiny_rbm("Gaussian", "Bernoulli"), 0.6),
}
"""A maker of each machine whose law is known exactly: every pair of units with a finite side, and other graphs."""


def scatter(machine: Machine, *, scale: float = 0.3, generator: torch.Generator | None = None) -> Machine:
    """Give every coupling normal parameters of this scale, in float64, and return the machine."""
    generator = random_generator(generator=generator)
    machine = machine.double()
    with torch.no_grad():
        for parameter in machine.couplings.parameters():
            parameter.copy_(draw_normal(parameter, generator=generator) * scale)
    return machine


class ExactLaw:
    """The law of a machine by enumeration: `p(s) = e^{-E(s)}/Z` over all states s of its finite layers.

    Layers with infinitely many states are summed out in the energies and drawn from their conditional law, so that
    `draw` gives whole states that follow the machine exactly. `given`, a value of the data layer with NaN where
    unknown, makes it the law given the known units.

    >>> ExactLaw(tiny_rbm("Bernoulli", "Gaussian")).probability.shape
    torch.Size([16])
    """

    def __init__(self, machine: BoltzmannMachine, given: Tensor | None = None, *, max_states: int = 4096) -> None:
        self.machine = machine
        finite = {name: machine.layer(name).n_configurations() for name in machine.layers}
        self.layers = [name for name, n in finite.items() if n is not None]
        counts = [n for n in finite.values() if n is not None]
        n_states = math.prod(counts)
        if not counts or n_states > max_states:
            raise ValueError(f"ExactLaw enumerates machines of at most {max_states} states. Got {n_states}: {finite}.")
        index = torch.arange(n_states)
        self.states: State = {}
        for name, n in zip(reversed(self.layers), reversed(counts), strict=True):
            self.states[name] = machine.layer(name).configurations(index % n)
            index = index // n
        with torch.no_grad():
            log_weight = -machine.energy(self.states)
        if given is not None:
            known = ~given.isnan()
            values = self.states[machine.data_layer]
            same = ((values == given) | ~known).reshape(n_states, -1).all(1)
            log_weight = log_weight.where(same, -torch.inf)
        self.log_z = log_weight.logsumexp(0).item()
        self.probability = log_weight.softmax(0)

    def draw(self, n: int, *, generator: torch.Generator | None = None) -> State:
        """Draw `n` whole states."""
        index = draw_categorical(self.probability.expand(n, -1), generator=generator).argmax(-1)
        state = {name: self.states[name][index] for name in self.layers}
        for name in self.machine.layers:
            if name not in state:
                state[name] = self.machine.sample(name, state, generator=generator)
        return {name: state[name] for name in self.machine.layers}

    def marginal(self, layers: list[str]) -> tuple[Tensor, Tensor]:
        """Return the states of some of the finite layers laid side by side, and their probabilities."""
        rows, inverse = _rows(self.states, layers).unique(dim=0, return_inverse=True)
        return rows, self.probability.new_zeros(len(rows)).index_add(0, inverse, self.probability)

    def frequencies(self, state: Mapping[str, Tensor], layers: list[str]) -> tuple[Tensor, Tensor]:
        """Return how often each state of these layers occurs among the samples, and its probability."""
        states, law = self.marginal(layers)
        rows = _rows(state, layers)
        projection = draw_normal(
            states[0], generator=random_generator(generator=None)
        )  # a number that tells the states apart
        keys, order = (states @ projection).sort()
        found = rows @ projection
        right = torch.searchsorted(keys, found).clamp(1, len(keys) - 1)
        index = order[torch.where(found - keys[right - 1] < keys[right] - found, right - 1, right)]
        strange = (rows - states[index]).abs().amax(1) > 1e-6
        if bool(strange.any()):
            raise ContractError(
                f"A chain holds {rows[strange][0].tolist()}, which is not a state of the layers {layers}."
            )
        return torch.bincount(index, minlength=len(states)).to(law) / len(rows), law


def _rows(state: Mapping[str, Tensor], layers: list[str]) -> Tensor:
    return torch.cat([state[name].flatten(1) for name in layers], dim=1)
