"""One verb for drawing from any model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from harmonium import workers
from harmonium.models import DBN, JEM, BoltzmannMachine, Conditioned, ScaleMixture
from harmonium.models.frozen import frozen
from harmonium.models.layers import check_eager, data_layer, layers_of
from harmonium.samplers.base import Info, Sampler
from harmonium.samplers.from_top import sample_from_top
from harmonium.samplers.gibbs import Gibbs
from harmonium.samplers.mala import MALA
from harmonium.types import (
    EnergyModel,
    Starts,
    State,
    Values,
    as_state,
    check_dtype,
    check_generator,
    check_shape,
    keep_freed_memory,
    without_gradient,
)
from harmonium.workers import Part


@without_gradient
def sample(
    model: nn.Module | EnergyModel,
    n: int,
    *,
    sampler: Sampler | None = None,
    n_steps: int = 1000,
    given: Values | Mapping[str, Values] | None = None,
    start: Values | Mapping[str, Values] | None = None,
    generator: torch.Generator | None = None,
    on_step: Callable[[int, Info], None] | None = None,
) -> Tensor:
    """Draw `n` samples of the data layer: the ends of `n` chains of `n_steps` steps, by Gibbs sampling unless told.

    `given` is one sample, or `n`, with NaN where the value is unknown: known units stay, the others are drawn given
    them, which fills in missing values and paints in images. A mapping names the layers that are known, such as a label
    or the conditions of a machine. `start` is where the chains begin, `n` samples; without it, where the model says. A
    network is in evaluation mode meanwhile, its parameters frozen, and gets both back. A deep belief network runs its
    chains at the top and is drawn downwards; a scale mixture runs those of its machine. `on_step(i, info)` is called
    after each step. `sample_layers` returns the other layers, too.

    >>> rbm = RBM(Bernoulli(4), Bernoulli(2))
    >>> sample(rbm, 3, n_steps=10, given=torch.tensor([1.0, float("nan"), 0.0, float("nan")])).shape
    torch.Size([3, 4])
    """
    if isinstance(model, DBN):
        _check_parameters(model)
        return _sample_network(model, n, n_steps, sampler, given, start, generator, on_step)
    check_eager(model)
    check_generator(generator)
    if isinstance(model, ScaleMixture):
        if given is not None or start is not None:
            raise ValueError(
                "A scale mixture is drawn as samples of its machine times a scale: it takes no `given` and no `start`. "
                "Leave them out, or draw from mixture.machine."
            )
        u = sample(model.machine, n, sampler=sampler, n_steps=n_steps, generator=generator, on_step=on_step)
        return model.multiplied(u, generator=generator)
    if not isinstance(model, EnergyModel):
        raise TypeError(f"{type(model).__name__} cannot be drawn from: it has no method free_energy(x).")
    state = sample_layers(
        model, n, sampler=sampler, n_steps=n_steps, given=given, start=start, generator=generator, on_step=on_step
    )
    return state[data_layer(model)]


@without_gradient
def sample_layers(
    model: EnergyModel,
    n: int,
    *,
    sampler: Sampler | None = None,
    n_steps: int = 1000,
    given: Values | Mapping[str, Values] | None = None,
    start: Values | Mapping[str, Values] | None = None,
    generator: torch.Generator | None = None,
    on_step: Callable[[int, Info], None] | None = None,
) -> State:
    """Draw `n` samples as `sample` does and return all layers that the chains hold, by their names."""
    if n < 1 or n_steps < 1:
        raise ValueError(f"`n` and `n_steps` must be at least 1. Got n={n}, n_steps={n_steps}.")
    keep_freed_memory()
    _check_parameters(model)
    if sampler is None:
        sampler = Gibbs() if isinstance(model, BoltzmannMachine) else MALA()
    layer = data_layer(model)
    like = next(model.parameters(), None) if isinstance(model, nn.Module) else None
    known = {} if given is None else as_state(given, layer, like=like)
    law, held = _conditioned(model, known, n)
    begin = None if start is None else as_state(start, layer, like=like)
    for name, value in (begin or {}).items():
        if len(value) != n:
            raise ValueError(
                f"`start` must hold one sample for each of the n={n} chains. Got {name} of shape {tuple(value.shape)}."
            )
    part = workers.part_of(n) if sampler.chain_axis() is not None and not sampler.clamp else None
    part = None if part is None or part.repeated else part
    if part is not None:  # the chains of this worker
        begin = None if begin is None else {name: part.take(value) for name, value in begin.items()}
        law, held = _of_part(law, held, part)
    with workers.dividing(part), frozen(model):
        n_here = n if part is None else part.count
        state = begin or as_state(starting_points(law, n_here, generator=generator), layer, like=like)
        for name, values in held.items():
            first = state[name] if name in state else law.initial(n_here, generator=generator)[name]  # type: ignore[attr-defined]
            _check_given(law, name, values, first)
            mask = ~values.isnan()
            state[name] = torch.where(mask, values, first)
            sampler = replace(sampler, clamp={**sampler.clamp, name: mask})
        chains = sampler.init(law, state[layer] if set(state) == {layer} else state, generator=generator)
        for i in range(n_steps):
            chains, info = sampler.step(law, chains, generator=generator)
            if on_step is not None:
                on_step(i, info)
        result = sampler.layers(law, chains)
    result = result if part is None else workers.gather_all(result)
    for value in result.values():
        if not value.is_meta and not bool(value.isfinite().all()):
            raise ValueError(
                f"The chains of {sampler!r} ran away to infinity or NaN. The model may have no normalizable law "
                "(unbounded units on both sides with large weights), or the steps are too large. Shrink the weights or "
                "the step size."
            )
    return result


def _of_part(law: EnergyModel, held: State, part: Part) -> tuple[EnergyModel, State]:
    """Return the law and the held values of the chains of one worker."""
    if isinstance(law, Conditioned) and law.is_batched:
        law = law.rows(torch.arange(part.first, part.first + part.count))
    shapes = {name: law.layer(name).shape if isinstance(law, BoltzmannMachine) else None for name in held}
    one = {
        name: value.ndim == len(shape) if (shape := shapes[name]) is not None else len(value) != part.total
        for name, value in held.items()
    }
    return law, {name: value if one[name] else part.take(value) for name, value in held.items()}


def _check_parameters(model: nn.Module | EnergyModel) -> None:
    """Raise if a parameter is NaN: units with two states, drawn by a probability of NaN, would still look like data."""
    for name, parameter in model.named_parameters() if isinstance(model, nn.Module) else ():
        if not parameter.is_meta and bool(parameter.isnan().any()):
            raise ValueError(
                f"The model cannot be drawn from: its parameter {name!r} holds NaN. Load a good state, or train it "
                "anew at a lower rate."
            )


def _conditioned(model: EnergyModel, known: State, n: int) -> tuple[EnergyModel, State]:
    """Return the law given the layers that are known as a whole, and the values of those that are known in part.

    The data layer always counts as known in part: it is what is drawn.
    """
    names = layers_of(model) if isinstance(model, BoltzmannMachine) else (data_layer(model),)
    for name in known:
        if name not in names:
            raise ValueError(
                f"`given` names layer {name!r}. The layers are {', '.join(map(repr, names))}. Use one of them"
                + ("; for a class draw from jem.given_class(y)." if isinstance(model, JEM) else ".")
            )
    if not isinstance(model, BoltzmannMachine):
        return model, known
    some = next(model.parameters())
    known = {name: model.layer(name).encoded(value, like=some) for name, value in known.items()}
    for name in model.given:
        if name not in known:
            raise ValueError(
                f"Layer {name!r} is a condition of this machine and has no law: samples are drawn given its value. "
                f"Give it, as in sample(machine, n, given={{{name!r}: …}})."
            )
    whole = {name: value for name, value in known.items() if name != model.data_layer and not bool(value.isnan().any())}
    for name in model.given:
        if name in known and name not in whole:
            raise ValueError(f"Layer {name!r} is a condition and must be known as a whole. It holds NaN.")
    for name, value in whole.items():
        model.layer(name).check_support(value, name)
        batch = model.layer(name).batch_shape(value)
        if batch not in ((), (n,)):
            raise ValueError(
                f"`given` must hold one value of layer {name!r}, or n={n} of them. Got shape {tuple(value.shape)}."
            )
    law = Conditioned(model, whole) if whole or model.given else model
    return law, {name: value for name, value in known.items() if name not in whole}


def _check_given(model: EnergyModel, name: str, given: Tensor, x: Tensor) -> None:
    if isinstance(model, BoltzmannMachine):
        units = model.layer(name)
        check_shape(given, units.shape, name="given", layer=name, owner=units)
        check_dtype(given, x, name="given")
        known = ~given.isnan()
        units.check_known(known, "given")
        units.check_support(torch.where(known, given, x[:1].reshape(units.shape)), "given")
    if given.shape not in (x.shape, x.shape[1:]):
        raise ValueError(
            f"`given` must be one sample, of shape {tuple(x.shape[1:])}, or n={len(x)} of them. "
            f"Got {tuple(given.shape)}. Give one, or call `sample` with as many samples as you give."
        )


def _sample_network(
    dbn: DBN,
    n: int,
    n_steps: int,
    sampler: Sampler | None,
    given: object,
    start: Values | None,
    generator: torch.Generator | None,
    on_step: Callable[[int, Info], None] | None,
) -> Tensor:
    if given is not None or sampler is not None:
        raise ValueError(
            "A DBN is drawn from the top down by Gibbs sampling in its top machine: it takes no `given` values and no "
            "other sampler. Leave them out, or use a machine of one piece (BoltzmannMachine)."
        )
    first = None
    if start is not None:
        like = dbn[0].weight
        first = dbn.visible.encoded(as_state(start, dbn.data_layer, like=like)[dbn.data_layer], like=like).to(like)
    return sample_from_top(dbn, n, n_steps=n_steps, sample_down=True, start=first, generator=generator, on_step=on_step)


def starting_points(model: EnergyModel, n: int, *, generator: torch.Generator | None = None) -> Tensor:
    """Return `n` points to start chains from: a machine's units under their biases, or the model's own `initial`."""
    if isinstance(model, BoltzmannMachine):
        return model.initial(n, generator=generator)[model.data_layer]
    if not isinstance(model, Starts):
        raise TypeError(
            f"{type(model).__name__} does not say where chains start. Give it a method initial(n, *, generator), "
            "or run a sampler from points of your own with sampler.init and sampler.step."
        )
    return model.initial(n, generator=generator)
