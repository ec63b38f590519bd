"""How the model meets the data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from harmonium.learning.history import Record
from harmonium.learning.monitors.base import Monitor
from harmonium.models import BoltzmannMachine, ScaleMixture
from harmonium.models.layers import data_layer, machine_of
from harmonium.types import State
from harmonium.units import Bernoulli, Spin, Units

if TYPE_CHECKING:
    from harmonium.learning.training import Training

_N_ROWS = 512


class Energies(Monitor):
    """How the model meets the data at the end of an epoch, on rows from all of it, and on 512 validation rows.

    `reconstruction` is the mean squared error of a reconstruction, `free_energy` the mean over the rows, `contrast`
    less that of what the model drew: its persistent chains, or those that started at the same rows. `free_energy_gap`
    is training minus validation: far below zero means over-fitting. `pseudo_likelihood` is `Σ_i log p(x_i | x_rest)` of
    binary data, estimated from one unit a sample. `between_values` is the share of the data that no unit takes, such as
    gray values of binary units, if there are any: then there is no such likelihood. All of a scale mixture are those of
    its machine, of rows divided by their scales.
    """

    @torch.no_grad()
    def __call__(self, training: Training) -> Record:
        """Return the metrics."""
        model = machine_of(training.model)
        if model is None or training.seen is None:
            return {}
        layer, (positive, negative, hidden) = model.data_layer, training.seen
        if layer not in positive:
            return {}
        x, units = positive[layer], model.layer(layer)
        record = {"reconstruction": _scalar((model.mean(layer, positive) - x).square().mean())}
        between = _share_between(units, x) if layer not in hidden and units.proper else 0.0
        if between:
            record["between_values"] = between
        try:
            free = _free_energy(model, {n: x for n, x in positive.items() if n not in hidden}, training.seen_fields)
        except ValueError:  # hidden layers that are tied to each other have no free energy in closed form
            return record
        below = {name: value for name, value in negative.items() if name not in hidden}
        record["free_energy"] = _scalar(free.mean())
        if below:
            record["contrast"] = record["free_energy"] - _scalar(model.energy(below).mean())
        alone = set(positive) == {layer, *hidden}
        if isinstance(units, Bernoulli | Spin) and alone and not between:
            record["pseudo_likelihood"] = _scalar(_pseudo_likelihood(model, x, free, training.epoch))
        if training.validation is not None:
            valid = {name: value[:_N_ROWS] for name, value in _validation(training).items() if name not in hidden}
            whole = not any(bool(value.isnan().any()) for value in valid.values())
            if whole and set(valid) == set(positive) - set(hidden):
                record["validation_free_energy"] = _scalar(model.energy(valid).mean())
                record["free_energy_gap"] = record["free_energy"] - record["validation_free_energy"]
        return record


def _validation(training: Training) -> State:
    """Return the validation data, those of a scale mixture each divided by a scale drawn given it."""
    valid, mixture = training.validation or {}, training.model
    if not isinstance(mixture, ScaleMixture):
        return valid
    u = mixture.divided(valid[data_layer(mixture)], generator=torch.Generator().manual_seed(0))
    return {mixture.machine.data_layer: u}


def _free_energy(model: BoltzmannMachine, observed: State, fields: State) -> Tensor:
    """Return F of rows, from the fields on all hidden layers where these are known: that saves a product."""
    missing = tuple(name for name in model.layers if name not in observed)
    if set(fields) == set(missing) and model.graph.summation(missing).is_closed:
        return model.energy_under(observed, fields)
    return model.energy(observed)


def _share_between(units: Units, x: Tensor) -> float:
    known = units.in_support(x)
    return 1 - int(known.count_nonzero()) / known.numel()


def _pseudo_likelihood(model: BoltzmannMachine, x: Tensor, free: Tensor, epoch: int) -> Tensor:
    """Estimate `Σ_i log p(x_i | x_rest)`: n times `log σ(F(x with unit i flipped) - F(x))`, i walking over all."""
    units = model.layer(model.data_layer)
    rows = x.flatten(1).clone()
    n = rows.shape[1]
    chain = torch.arange(len(rows), device=x.device)
    site = (chain * 7919 + epoch * 104729) % n
    low, high = units.bounds()
    rows[chain, site] = low + high - rows[chain, site]
    return n * logsigmoid(model.energy(rows.reshape(x.shape)) - free).mean()


def _scalar(x: Tensor) -> float:
    return float(x.item())
