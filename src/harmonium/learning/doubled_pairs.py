"""Where the learning of a deep Boltzmann machine starts: pairs of layers, each heard twice where a third is missing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from harmonium.couplings import Bias
from harmonium.learning.fit import fit
from harmonium.learning.history import History
from harmonium.learning.objectives import Objective
from harmonium.learning.starts.initialize import initialize
from harmonium.learning.training import Callback
from harmonium.learning.transforms import Transform
from harmonium.models import DBM, BoltzmannMachine
from harmonium.models.graph import Term
from harmonium.types import State

_N_START, _ROWS = 10_000, 4096


def fit_doubled_pairs(
    dbm: DBM,
    x: Tensor,
    objective: Objective,
    *,
    optimizer: Callable[[Iterable[nn.Parameter]], Optimizer],
    epochs: int | Sequence[int],
    batch_size: int = 128,
    callbacks: Sequence[Callback] = (),
    generator: torch.Generator | None = None,
    transforms: Sequence[Transform] = (),
) -> list[History]:
    """Train the weights of each pair of neighboring layers on what the pairs below make of the data, the lowest first.

    Inside the machine a hidden layer hears two neighbors, in a pair only one. So the neighbor is there twice, with the
    same weights: the lower layer of every pair but the top one, the upper layer of every pair but the lowest
    (Salakhutdinov and Hinton 2009, section 3.1). The field on a hidden layer is then the mean of those in its two
    pairs, `½(2W_lᵀh_{l-1} + c_l) + ½(2W_{l+1}h_{l+1} + b_l)`, which says what the weights and biases of the whole are.
    """
    n_epochs = [epochs] * dbm.depth if isinstance(epochs, int) else list(epochs)
    if len(n_epochs) != dbm.depth:
        raise ValueError(f"`epochs` must be one number, or one for each of {dbm.depth} pairs. Got {n_epochs}.")
    histories, ends = [], []
    for i, n in enumerate(n_epochs):
        pair, biases = doubled_pair(dbm, i)
        state = _doubled(pair, x)
        initialize(pair, {name: value[:_N_START] for name, value in state.items()})
        history = fit(
            pair,
            state,
            copy.deepcopy(objective),
            optimizer=optimizer(pair.parameters()),
            epochs=n,
            batch_size=batch_size,
            callbacks=callbacks,
            generator=generator,
            transforms=copy.deepcopy(list(transforms)),
            monitors=[],
        )
        histories.append(history)
        ends.append(biases)
        if i + 1 < dbm.depth:
            x = _climbed(pair, x)
    _take_biases(dbm, ends)
    return histories


def doubled_pair(dbm: DBM, i: int) -> tuple[BoltzmannMachine, tuple[Bias, Bias]]:
    """Return layers i and i + 1 of a deep machine as one of their own, with its coupling and two new biases."""
    below, above = list(dbm.units)[i : i + 2]
    coupling = dbm.couplings[i]
    lower, upper = dbm.layer(below), dbm.layer(above)
    units = {"visible": lower} | ({"visible_twin": lower} if i + 1 < dbm.depth else {})
    units |= {"hidden": upper} | ({"hidden_twin": upper} if i > 0 else {})
    of = {"visible": Bias(lower.shape), "hidden": Bias(upper.shape)}
    kinds = {name: name.removesuffix("_twin") for name in units}
    visible, hidden = ([name for name, kind in kinds.items() if kind == end] for end in of)
    terms: list[Term] = [((v, h), coupling) for v in visible for h in hidden]  # type: ignore[misc]
    pair = BoltzmannMachine(units, [*terms, *(((name,), of[kind]) for name, kind in kinds.items())])
    some = dbm.weights[i]
    return pair.to(dtype=some.dtype, device=some.device), (of["visible"], of["hidden"])


def _doubled(pair: BoltzmannMachine, x: Tensor) -> State:
    """Return the data of a pair: its lower layer, twice where it is there twice."""
    return {name: x for name in pair.layers if name.startswith("visible")}


@torch.no_grad()
def _climbed(pair: BoltzmannMachine, x: Tensor) -> Tensor:
    """Return the means of the upper layer of a pair given the lower one."""
    some = next(pair.parameters())
    return torch.cat([pair.mean("hidden", _doubled(pair, rows.to(some))) for rows in x.split(_ROWS)])


@torch.no_grad()
def _take_biases(dbm: DBM, ends: list[tuple[Bias, Bias]]) -> None:
    """Give a layer the mean of its biases in the pairs that it is in."""
    for name, bias in enumerate(dbm.biases):
        held: list[Tensor] = [
            end.bias for i, pair in enumerate(ends) for end, at in zip(pair, (i, i + 1), strict=True) if at == name
        ]
        bias.copy_(torch.stack(held).mean(0))
