"""Contrastive learning: data down, samples of the model up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from harmonium.learning.objectives.dense_pair import DensePair, Phase
from harmonium.models import BoltzmannMachine
from harmonium.samplers import Gibbs, ParallelTempering, Sampler
from harmonium.samplers.sample import starting_points
from harmonium.types import EnergyModel, State, without_gradient


class Phases(NamedTuple):
    """The two states whose energies are contrasted, hidden layers at their means where they are known."""

    positive: State
    negative: State


class Contrastive(ABC):
    """The contrast `F(x⁺) - F(x⁻)` of data and samples.

    Eq. 6.42 of Tomczak's chapter; eq. 4 and 6 of Hwang et al. 2020, who maximize `F(x⁻) - F(x⁺)`: the same thing. Its
    gradient estimates that of `-log p(x⁺)`. Called, it is a differentiable loss for a loop of your own; inside
    `harmonium.fit` the same gradient is written in closed form.
    """

    from_data: ClassVar[bool] = False
    """Whether a chain starts at each sample, and so has the weight of its sample."""

    def __call__(self, model: EnergyModel, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Return the mean of `F(x⁺) - F(x⁻)`, with x⁻ held constant."""
        with torch.no_grad():
            negative = self.negatives(model, x, generator=generator)
        return model.free_energy(x).mean() - model.free_energy(negative).mean()

    @abstractmethod
    def negatives(self, model: EnergyModel, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Return samples x⁻ for a batch x⁺."""

    @without_gradient
    def accumulate_grad(
        self,
        model: BoltzmannMachine,
        x: Tensor,
        *,
        weight: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Phases:
        """Add the gradient of the contrast to the gradients, in closed form; `weight` has one value a sample."""
        pair = DensePair.of(model, x) if weight is None else None
        if pair is not None:
            phases = self._straight_phases(pair, x, generator)
            if phases is not None:
                return phases
        layer = model.data_layer
        fields = {name: model.field(name, {layer: x}) for name in model.units if name != layer}
        positive = {layer: x} | {name: model.layer(name).mean(field) for name, field in fields.items()}
        share: Tensor | float = 1.0 / x.shape[0] if weight is None else weight / weight.sum()
        model.add_gradient(positive, share)
        negative = self._negative_phase(model, positive, fields, generator)
        model.add_gradient(negative, -share if self.from_data else -1.0 / negative[layer].shape[0])
        return Phases(positive, negative)

    def _straight_phases(self, pair: DensePair, x: Tensor, generator: torch.Generator | None) -> Phases | None:
        """Do all that `accumulate_grad` does for a plain RBM, to the same numbers; None if there is no short way."""
        return None

    @abstractmethod
    def _negative_phase(
        self, model: BoltzmannMachine, positive: State, fields: State, generator: torch.Generator | None
    ) -> State:
        """Return the negative state, hidden layers at their means; `fields` are those of the hidden layers given x⁺."""

    def state_dict(self) -> State:
        """Return what must survive between updates: the chains."""
        return {}

    def load_state_dict(self, state: State) -> None:  # noqa: B027  (a hook: most objectives carry nothing)
        """Take up the chains again."""


@dataclass
class CD(Contrastive):
    """Contrastive divergence: chains of `n_steps` steps that start at the data (Hinton 2002; eq. 6.43).

    >>> CD(n_steps=1)
    CD(n_steps=1, sampler=None)
    """

    from_data: ClassVar[bool] = True

    n_steps: int = 1
    sampler: Sampler | None = None

    def __post_init__(self) -> None:
        _check_positive("n_steps", self.n_steps)

    def negatives(self, model: EnergyModel, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Return the ends of chains that start at `x`."""
        sampler = self.sampler or Gibbs()
        state = sampler.init(model, x, generator=generator)
        for _ in range(self.n_steps):
            state, _info = sampler.step(model, state, generator=generator)
        return sampler.samples(model, state)

    def _straight_phases(self, pair: DensePair, x: Tensor, generator: torch.Generator | None) -> Phases | None:
        if type(self) is not CD or self.sampler is not None:  # a class of your own may draw otherwise
            return None
        positive, field = pair.above(x)
        h = pair.draw_hidden(positive, field, generator=generator)
        negative, _ = pair.chain(h, self.n_steps, generator=generator)
        return _contrasted(pair, positive, negative)

    def _negative_phase(
        self, model: BoltzmannMachine, positive: State, fields: State, generator: torch.Generator | None
    ) -> State:
        if self.sampler is not None:
            return model.infer(self.negatives(model, positive[model.data_layer], generator=generator))
        drawn = {
            name: model.layer(name).sample_given_mean(field, positive[name], generator=generator)
            for name, field in fields.items()
        }
        return _sweep(model, positive | drawn, self.n_steps, generator, carry=False)[1]


@dataclass
class PCD(Contrastive):
    """Persistent contrastive divergence: `n_chains` chains that go on from update to update (Tieleman 2008).

    They start at the model's units under their biases. Another `sampler` than Gibbs may drive them.

    >>> PCD(n_chains=100).n_steps
    1
    """

    n_chains: int = 100
    n_steps: int = 1
    sampler: Sampler | None = None
    chains: State | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_positive("n_chains", self.n_chains)
        _check_positive("n_steps", self.n_steps)

    def negatives(self, model: EnergyModel, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        """Move the chains and return where they are."""
        sampler = self.sampler or Gibbs()
        state = self._chains(model, sampler, generator)
        for _ in range(self.n_steps):
            state, _info = sampler.step(model, state, generator=generator)
        self.chains = state
        return sampler.samples(model, state)

    def _straight_phases(self, pair: DensePair, x: Tensor, generator: torch.Generator | None) -> Phases | None:
        if type(self) is not PCD or self.sampler is not None or self.chains is None:
            return None
        positive, _ = pair.above(x)
        negative, field = pair.chain(self.chains["hidden"], self.n_steps, generator=generator)
        self.chains = {"visible": negative.v, "hidden": pair.draw_hidden(negative, field, generator=generator)}
        return _contrasted(pair, positive, negative)

    def _negative_phase(
        self, model: BoltzmannMachine, positive: State, fields: State, generator: torch.Generator | None
    ) -> State:
        if self.sampler is not None:
            return model.infer(self.negatives(model, positive[model.data_layer], generator=generator))
        chains = self._chains(model, Gibbs(), generator)
        self.chains, negative = _sweep(model, chains, self.n_steps, generator, carry=True)
        return negative

    def _chains(self, model: EnergyModel, sampler: Sampler, generator: torch.Generator | None) -> State:
        if self.chains is None:
            start = starting_points(model, self.n_chains, generator=generator)
            self.chains = sampler.init(model, start, generator=generator)
        return self.chains

    def state_dict(self) -> State:
        """Return the chains."""
        return dict(self.chains or {})

    def load_state_dict(self, state: State) -> None:
        """Take up the chains again."""
        self.chains = dict(state) or None


@dataclass
class TemperedPCD(PCD):
    """Persistent chains at several temperatures that trade places: parallel tempering as the negative phase.

    >>> TemperedPCD(n_chains=20, betas=(0.0, 0.5, 1.0)).sampler.betas
    (0.0, 0.5, 1.0)
    """

    betas: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sampler = ParallelTempering(betas=tuple(self.betas))


def _contrasted(pair: DensePair, positive: Phase, negative: Phase) -> Phases:
    pair.add_contrast(positive, negative)
    return Phases(
        {"visible": positive.v, "hidden": positive.h},
        {"visible": negative.v, "hidden": negative.h},
    )


def _sweep(
    model: BoltzmannMachine, state: State, n_steps: int, generator: torch.Generator | None, *, carry: bool
) -> tuple[State, State]:
    """Run Gibbs steps; return the last state, and that state with its last block at its means.

    The means replace draws at no cost, since their fields are known: less noise in the gradient. Unless the state is
    carried on, the last block is not drawn at all.
    """
    gibbs, layer = Gibbs(), model.data_layer
    *first, last = model.blocks()
    plain = layer not in last and not any(model.ties(name, name) for name in model.units)
    for _ in range(n_steps if carry or not plain else n_steps - 1):
        state, info = gibbs.step(model, state, generator=generator)
    if not plain:
        return state, state
    if carry:
        fields = info["fields"]
    else:
        state = dict(state)
        for name in (name for block in first for name in block):
            state[name] = model.sample(name, state, generator=generator)
        fields = {name: model.field(name, state) for name in last}
    return state, state | {name: model.layer(name).mean(field) for name, field in fields.items()}


def _check_positive(name: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"`{name}` must be at least 1. Got {value}.")
