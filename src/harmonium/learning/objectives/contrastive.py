"""Contrastive learning: data down, samples of the model up."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from harmonium import workers
from harmonium.draws import draw_categorical, draw_normal
from harmonium.inference import ClosedForm, Inference
from harmonium.learning.objectives.base import Case, Objective, Phases
from harmonium.learning.objectives.conv_pair import ConvPair
from harmonium.learning.objectives.dense_pair import DensePair, Phase
from harmonium.learning.objectives.sparse_pair import SparsePair
from harmonium.models import RBM, BoltzmannMachine, Conditioned
from harmonium.models.layers import data_layer
from harmonium.models.summation import configurations
from harmonium.samplers import Gibbs
from harmonium.types import EnergyModel, Filled, State, as_state, without_gradient
from harmonium.units import Bernoulli


class Contrastive(Objective):
    """The contrast `F(x⁺) - F(x⁻)` of data and samples.

    Eq. 6.42 of Tomczak's chapter; eq. 4 and 6 of Hwang et al. 2020, who maximize `F(x⁻) - F(x⁺)`: the same thing. Its
    gradient estimates that of `-log p(x⁺)`, of any machine: layers that the batch holds are observed, also those that
    only some of its rows hold (NaN in the others), and `inference` fills in the rest. The layers that the machine
    declares as given hold the same values in both phases: `-log p(x⁺ | given)`.
    """

    from_data: ClassVar[bool] = False
    """Whether a chain starts at each sample, and so has the weight of its sample."""

    weighs_rows: ClassVar[bool] = True
    inference: Inference = ClosedForm()

    @classmethod
    def examples(cls) -> list[Case]:
        """Return a small machine and its own law."""
        machine = small_machine()
        return [Case(lambda *, generator: cls(), machine, partial(draw_exactly, machine, layers=(machine.data_layer,)))]

    def loss(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the mean of `F(x⁺) - F(x⁻)`, with x⁻ held constant; F may be the bound of the inference."""
        observed = as_state(batch, data_layer(model))
        if not isinstance(model, BoltzmannMachine):
            energy: EnergyModel = model  # type: ignore[assignment]
            x = observed[data_layer(model)]
            with torch.no_grad():
                negative = self.draw_negatives(energy, observed, generator=generator)[data_layer(model)]
            with self.among_negatives():
                of_negatives = workers.mean(energy.free_energy(negative))
            return workers.mean(energy.free_energy(x)) - of_negatives
        observed = model.state(observed)
        negative = self.negative_energy(model, observed, generator=generator)
        parts = [self.inference.free_energy(model, part) for _, part in rows_by_layers(model, observed)]
        return workers.mean(torch.cat(parts)) - negative

    def negative_energy(
        self, model: BoltzmannMachine, observed: State, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the mean of `F(x⁻)`, with x⁻ held constant. A hook: one whose gradient is known otherwise has it."""
        with torch.no_grad():
            drawn = self.draw_negatives(model, observed, generator=generator)
        with self.among_negatives():
            return workers.mean(model.energy(drawn))

    def among_negatives(self) -> AbstractContextManager[object]:
        """Return the context in which negatives are rows of a part: those of the batch, unless chains are apart."""
        return nullcontext()

    @abstractmethod
    def draw_negatives(self, model: EnergyModel, observed: State, *, generator: torch.Generator | None = None) -> State:
        """Return samples x⁻ for a batch: the layers that are drawn, the others to be summed out."""

    @without_gradient
    def accumulate_grad(
        self,
        model: nn.Module,
        batch: Tensor | Mapping[str, Tensor],
        *,
        weight: Tensor | None = None,
        index: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Phases | None:
        """Add the gradient of the contrast to the gradients, in closed form; `weight` has one value a sample."""
        has_own_loss = type(self).loss is not Contrastive.loss  # of a class that changes it: autograd knows it
        if has_own_loss or not isinstance(model, BoltzmannMachine) or model.remembers:
            return super().accumulate_grad(model, batch, weight=weight, generator=generator)
        observed = as_state(batch, model.data_layer)
        pair = DensePair.of(model, observed) or ConvPair.of(model, observed) if weight is None else None
        if pair is not None:
            if SparsePair.suits(pair, observed[pair.names[0]]):
                pair = SparsePair.like(pair)
            phases = self._straight_phases(pair, observed, generator)
            if phases is not None:
                return phases
        observed = model.state(observed)
        n = math.prod(model.batch_shape(observed))
        share: Tensor | float = 1.0 / workers.whole(n)
        if weight is not None:
            total = workers.total(weight)
            if not bool(total):
                return None  # nothing in this batch counts
            share = weight / total
        positive = self._positive_phase(model, observed, share, index, generator)
        negative = self._negative_phase(model, positive, share, generator)
        held = [name for name in observed if name not in positive.fields]
        return Phases(positive.state, negative, tuple(name for name in model.layers if name not in held))

    def _straight_phases(self, pair: DensePair, batch: State, generator: torch.Generator | None) -> Phases | None:
        """Do all that `accumulate_grad` does for a plain RBM, to the same numbers; None if there is no short way."""
        return None

    def _positive_phase(
        self,
        model: BoltzmannMachine,
        observed: State,
        share: Tensor | float,
        index: Tensor | None,
        generator: torch.Generator | None,
    ) -> Filled:
        """Add the gradient of F at the data; rows that observe the same layers are taken together."""
        groups = rows_by_layers(model, observed)
        if len(groups) == 1:
            return self.inference.accumulate_grad(model, groups[0][1], share, index=index, generator=generator)
        filled = []
        for rows, part in groups:
            weight = share[rows] if isinstance(share, Tensor) else share
            of_rows = None if index is None else index[rows.to(index.device)]
            filled.append(self.inference.accumulate_grad(model, part, weight, index=of_rows, generator=generator))
        order = torch.cat([rows for rows, _ in groups]).argsort()
        state = {name: torch.cat([part.state[name] for part in filled])[order] for name in filled[0].state}
        # A layer that some rows observe is drawn again for all: chains forget where they start.
        hidden = {name for part in filled for name in part.fields}
        return Filled(state, {name: model.field(name, state) for name in hidden})

    def state_dict(self) -> State:
        """Return what the inference carries."""
        return {f"inference.{name}": value for name, value in self.inference.state_dict().items()}

    def load_state_dict(self, state: State) -> None:
        """Give the inference back what it carried."""
        prefix = "inference."
        carried = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
        self.inference.load_state_dict(carried)

    @abstractmethod
    def _negative_phase(
        self, model: BoltzmannMachine, positive: Filled, share: Tensor | float, generator: torch.Generator | None
    ) -> State:
        """Add minus the gradient at samples of the model; return them, hidden layers at their means."""


def can_divide(model: nn.Module, inference: Inference) -> bool:
    """Return whether rows of a model may be inferred apart from each other, with as many draws for each.

    What a memory keeps, and what an inference does for a batch as a whole, ties rows.
    """
    return isinstance(inference, ClosedForm) and not (isinstance(model, BoltzmannMachine) and model.remembers)


def rows_by_layers(machine: BoltzmannMachine, observed: State) -> list[tuple[Tensor, State]]:
    """Return rows of a batch grouped by the layers that they observe: their numbers, and the state without the others.

    A layer is not observed in a row where all of its values are NaN.
    """
    own = {name: value for name, value in observed.items() if name in machine.layers}
    unknown: State = {}
    for name, value in own.items() if len(own) > 1 else ():
        holes = value.isnan().flatten(1)
        if bool(holes.any()):
            unknown[name] = holes.all(1)
            if not torch.equal(unknown[name], holes.any(1)):
                raise ValueError(
                    f"A row of layer {name!r} is NaN in part. `fit` draws such values and `sample` fills them in "
                    "(given=…); here a row holds a layer whole or not at all."
                )
    if not unknown:
        first = next(iter(own.values()))
        return [(torch.arange(len(first), device=first.device), observed)]
    pattern = sum(rows.long() << i for i, rows in enumerate(unknown.values()))
    groups = []
    for key in torch.as_tensor(pattern).unique().tolist():
        rows = torch.nonzero(pattern == key).squeeze(1)
        left_out = {name for i, name in enumerate(unknown) if key >> i & 1}
        groups.append((rows, {name: value[rows] for name, value in observed.items() if name not in left_out}))
    return groups


def law_of(model: BoltzmannMachine, state: State, n: int | None = None) -> tuple[BoltzmannMachine, State, Tensor]:
    """Return the machine under the conditions in a state, these conditions, and the row whose conditions a chain has.

    Without n there is a chain for each row; otherwise chain i has the conditions of row i, counted from the start again
    where there are fewer rows. Of chains that are divided those of this part are meant, and rows of all workers.
    """
    if not model.given:
        return model, {}, torch.arange(0)
    conditions = {name: state[name] for name in model.given}
    if n is None:
        return Conditioned(model, conditions), conditions, torch.arange(len(state[model.given[0]]))
    flat = {name: value.reshape(-1, *model.layer(name).shape) for name, value in conditions.items()}
    numbers = torch.arange(n, device=state[model.given[0]].device)
    part = workers.current()
    if part is not None:
        flat = flat if part.repeated else workers.gather_all(flat)
        numbers = part.of(n).take(numbers)
    rows = numbers % len(flat[model.given[0]])
    conditions = {name: value[rows] for name, value in flat.items()}
    return Conditioned(model, conditions), conditions, rows


def contrasted(pair: DensePair, positive: Phase, negative: Phase) -> Phases:
    """Make the gradients of a contrast in a straight line and return its phases."""
    pair.add_contrast(positive, negative)
    v, h = pair.names
    return Phases({v: positive.v, h: positive.h}, {v: negative.v, h: negative.h}, (h,))


def drop_last_block(machine: BoltzmannMachine, state: State) -> State:
    """Return the layers of a state without the last block, which then is summed out: less noise in the gradient.

    The last block stays if it holds the data layer, or a layer tied to itself.
    """
    last = machine.blocks()[-1]
    if machine.data_layer in last or any(machine.ties(name, name) for name in last):
        return state
    return {name: value for name, value in state.items() if name not in last}


def sweep(
    machine: BoltzmannMachine, state: State, n_steps: int, *, carry: bool, generator: torch.Generator | None = None
) -> tuple[State, State, State]:
    """Run Gibbs steps; return the last state, that state with its last block at its means, and what it holds drawn.

    The means replace draws at no cost, since their fields are known. Unless the state is carried on, the last block is
    not drawn at all.
    """
    gibbs = Gibbs()
    *first, last = machine.blocks()
    if last == machine.graph.joint:
        for _ in range(n_steps):
            state, _ = gibbs.step(machine, state, generator=generator)
        drawn = {name: value for name, value in state.items() if name not in last}
        return state, machine.fill(machine.state(drawn)).state, drawn
    if len(drop_last_block(machine, dict.fromkeys(machine.layers, torch.empty(0)))) == len(machine.layers):
        for _ in range(n_steps):
            state, _ = gibbs.step(machine, state, generator=generator)
        return state, state, state
    for _ in range(n_steps if carry else n_steps - 1):
        state, info = gibbs.step(machine, state, generator=generator)
    if carry:
        fields = info["fields"]
    else:
        state = dict(state)
        for block in first:
            gibbs.draw_block(machine, block, state, generator=generator)
        fields = {name: machine.field(name, state) for name in last}
    means = {name: machine.layer(name).mean(field) for name, field in fields.items()}
    return state, state | means, {name: value for name, value in state.items() if name not in means}


def small_machine() -> RBM:
    """Return an RBM that can be enumerated, with weights that matter, in float64."""
    generator = torch.Generator().manual_seed(0)
    rbm = RBM(Bernoulli(4), Bernoulli(3)).double()
    with torch.no_grad():
        for parameter in rbm.parameters():
            parameter.copy_(draw_normal(parameter, generator=generator) * 0.7)
    return rbm


@torch.no_grad()
def draw_exactly(
    machine: BoltzmannMachine, n: int, *, layers: tuple[str, ...] = (), generator: torch.Generator | None = None
) -> State:
    """Draw states of an RBM that is small enough to be enumerated, exactly; all layers unless some are named."""
    below, above = machine.layers
    states = configurations(machine, (below,), {})[below]
    share = (-machine.energy({below: states})).softmax(0)
    x = states[draw_categorical(share.expand(n, -1), generator=generator).argmax(-1)]
    state = {below: x, above: machine.sample(above, {below: x}, generator=generator)}
    return {name: state[name] for name in layers or machine.layers}
