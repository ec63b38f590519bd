"""How probable is the data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from harmonium import workers
from harmonium.evaluation.dbn_bound import dbn_bound
from harmonium.inference import ClosedForm, Inference, MeanField
from harmonium.learning.objectives.contrastive import rows_by_layers
from harmonium.models import DBN, BoltzmannMachine, Conditioned
from harmonium.models.layers import data_layer
from harmonium.models.network_energy import NetworkEnergy
from harmonium.partition import log_z as estimate_log_z
from harmonium.types import EnergyModel, Estimate, State, Values, as_state

_ROWS = 4096


@torch.no_grad()
def log_likelihood(
    model: nn.Module | EnergyModel,
    x: Values | Mapping[str, Values],
    *,
    log_z: Estimate | None = None,
    inference: Inference | None = None,
    generator: torch.Generator | None = None,
) -> Estimate:
    """Return `log p(x) = -F(x) - log Z` of each sample, in nats (eq. 6.36), with the error and the bounds of log Z.

    `x` is the data layer, or a mapping of the observed layers; layers that are left out are summed out, in the rows
    that do not hold them (NaN) too. Where they cannot be, `kind` says that it is a *bound*: `inference` gives a lower
    bound, by `MeanField()` unless told. So it is for a deep belief network, whose hidden layers are drawn. A machine
    with conditions has a log Z for each of them, `log p(x | given)`.

    Values that the units do not take (gray ones of binary units, 1.9 of counts) have no likelihood and are refused; so
    are points outside the box over which Z of a neural energy is the integral.

    Nats of differently binarized data cannot be compared. `log_z` is estimated unless given; `.mean()` averages.
    """
    like = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    state = as_state(x, data_layer(model), like=like)
    if isinstance(model, DBN):
        if set(state) != {data_layer(model)}:
            raise ValueError(
                f"A deep belief network is scored on its layer {data_layer(model)!r} alone. Got {list(state)}. Give "
                f"{{{data_layer(model)!r}: x}}, or x itself."
            )
        return dbn_bound(model, state[data_layer(model)], log_z=log_z, generator=generator)
    if not isinstance(model, EnergyModel):
        raise TypeError(f"{type(model).__name__} has no likelihood: it has no method free_energy(x).")
    if isinstance(model, BoltzmannMachine):
        state = model.state(state)
        batch = model.batch_shape(state)
        state = {
            name: value.expand(*batch, *model.layer(name).shape).reshape(-1, *model.layer(name).shape)
            for name, value in state.items()
        }
        if isinstance(model, Conditioned) and model.is_batched:
            found = _conditional(model.machine, model.graph.given, state, log_z, inference, generator)
        elif model.given:
            found = _conditional(model, model.given, state, log_z, inference, generator)
        else:
            found = _scored(model, state, log_z, inference, generator)
        return found if len(batch) == 1 else _reshaped(found, batch)
    return _scored(model, state, log_z, inference, generator)


def _scored(
    model: EnergyModel,
    state: State,
    log_z: Estimate | None,
    inference: Inference | None,
    generator: torch.Generator | None,
) -> Estimate:
    if log_z is None:
        _check_box(model, state)
    free, is_bound = _free_energies(model, state, inference)
    z = estimate_log_z(model, generator=generator) if log_z is None else log_z
    lower, upper = -free - z.upper, -free - z.lower
    found = replace(z, value=-free - z.value, lower=lower, upper=upper, at_least=-free - z.at_most)
    if is_bound:  # F is an upper bound: nothing is known of how probable x is at most
        note = "; ".join(filter(None, [z.note, "a lower bound of log p(x), by its inference"]))
        return replace(found, kind=f"{z.kind} bound", note=note, at_most=math.inf)
    return replace(found, at_most=-free - z.at_least)


def _check_box(model: EnergyModel, state: State) -> None:
    """Raise unless the data lie where Z is integrated: in the box of a neural energy without a base measure."""
    if not isinstance(model, NetworkEnergy) or model.base_std is not None:
        return
    x, (low, high) = state[data_layer(model)], model.box
    if x.numel() and not bool(((x >= low) & (x <= high)).all()):
        raise ValueError(
            f"`x` must lie in the box [{low:g}, {high:g}], over which Z of this energy is the integral. Got values "
            f"from {x.amin().item():g} to {x.amax().item():g}. Rescale the data, build the model with a wider box or a "
            "base_std, or give a log_z of your own (log_z(model, reference=…))."
        )


def _reshaped(found: Estimate, batch: tuple[int, ...]) -> Estimate:
    """Return the numbers of each sample in the shape of the batch."""
    names = ("value", "error", "lower", "upper", "at_least", "at_most")
    shaped: dict[str, Any] = {
        name: number.reshape(batch)
        for name in names
        if isinstance(number := getattr(found, name), Tensor) and number.ndim
    }
    return replace(found, **shaped)


def _free_energies(model: EnergyModel, state: State, inference: Inference | None) -> tuple[Tensor, bool]:
    """Return F of each row, or a bound of it, in float64, and whether it is a bound."""
    if not isinstance(model, BoltzmannMachine):
        x = state[data_layer(model)]
        return workers.by_rows(
            lambda x: torch.cat([model.free_energy(rows) for rows in x.split(_ROWS)]), x
        ).double(), False
    state = {name: value for name, value in state.items() if name in (*model.layers, *model.given)}
    chosen = inference or _inference_for(model, state)
    n = len(next(iter(state.values())))
    free, is_bound = torch.zeros(n, dtype=torch.float64), not chosen.exact
    if is_bound:  # rows of a batch are inferred together
        _score(model, state, chosen, torch.arange(n), _ROWS, free)
        return free, True

    def of_rows(index: Tensor) -> Tensor:
        _score(model, state, chosen, index, _rows_at_once(model, state), free)
        return free[index]

    return workers.by_rows(of_rows, torch.arange(n)), False


def _score(
    model: BoltzmannMachine, state: State, chosen: Inference, numbers: Tensor, n_at_once: int, free: Tensor
) -> None:
    """Write F of the numbered rows, or a bound of it, into `free`."""
    for index in numbers.split(n_at_once):
        law = model.rows(index) if isinstance(model, Conditioned) else model
        for rows, part in rows_by_layers(model, {name: value[index] for name, value in state.items()}):
            for name, value in part.items():
                units = model.layer(name)
                (units.check_support if name in model.given else units.check_values)(value, name)
            free[index[rows.cpu()]] = chosen.free_energy(law, part).double().cpu()


def _inference_for(model: BoltzmannMachine, state: State) -> Inference:
    try:
        model.graph.summation(tuple(name for name in model.layers if name not in state))
    except ValueError:
        return MeanField()
    return ClosedForm()


def _rows_at_once(model: BoltzmannMachine, state: State) -> int:
    """Return how many rows are scored at once: counted layers take the place of rows."""
    summation = model.graph.summation(tuple(name for name in model.layers if name not in state))
    n = 1
    for name in summation.counted:
        n *= model.layer(name).n_configurations() or 1
    return max(1, _ROWS // n)


def _conditional(
    model: BoltzmannMachine,
    given: tuple[str, ...],
    state: State,
    log_z: Estimate | None,
    inference: Inference | None,
    generator: torch.Generator | None,
) -> Estimate:
    """Return `log p(x | given)` of each row: one log Z for each distinct condition."""
    if log_z is not None:
        raise ValueError(
            "log Z of a machine with conditions differs from row to row: leave `log_z` out, or score the rows of one "
            "condition with Conditioned(machine, {…})."
        )
    n = len(next(iter(state.values())))
    flat = torch.cat([state[name].reshape(n, -1) for name in given], 1)
    _, group = flat.unique(dim=0, return_inverse=True)
    numbers = {key: torch.zeros(n, dtype=torch.float64) for key in ("value", "error", "lower", "upper")}
    found: list[Estimate] = []
    for i in range(int(group.max()) + 1):
        rows = torch.nonzero(group == i).squeeze(1)
        law = Conditioned(model, {name: state[name][rows[0]] for name in given})
        seen = {name: value[rows] for name, value in state.items() if name in law.layers}
        found.append(log_likelihood(law, seen, inference=inference, generator=generator))
        for key, values in numbers.items():
            values[rows.cpu()] = torch.as_tensor(getattr(found[-1], key), dtype=torch.float64).cpu()
    kinds, notes = sorted({part.kind for part in found}), sorted({part.note for part in found if part.note})
    trusted = all(part.trusted for part in found)
    value, error, lower, upper = numbers.values()
    return Estimate(value, error, lower, upper, ", ".join(kinds), trusted=trusted, note="; ".join(notes))
