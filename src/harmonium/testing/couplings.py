"""The contract of couplings: a multilinear form, its fields and its closed-form gradient."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

import harmonium.couplings
from harmonium.couplings import Coupling
from harmonium.couplings.base import Shapes
from harmonium.draws import draw_normal
from harmonium.testing.contract import ContractError, members, random_generator, require, require_close, require_shape

ALL_COUPLINGS: list[tuple[Callable[[], Coupling], Shapes]] = [
    (lambda kind=kind, i=i: kind.examples()[i][0], shapes)  # type: ignore[misc]
    for kind in members(harmonium.couplings, Coupling)
    for i, (_, shapes) in enumerate(kind.examples())
]
"""A maker of each kind of coupling, called anew for each test, with the shapes of the layers that it ties."""

_TOLERANCE = 1e-10
_BATCHES: tuple[tuple[int, ...], ...] = ((), (1,), (4,), (2, 3), (0,))


def check_coupling(
    coupling: Coupling, shapes: Sequence[tuple[int, ...]] | None = None, *, generator: torch.Generator | None = None
) -> None:
    """Hold a coupling to its contract; raise `ContractError` where it fails. All to 1e-10 in float64.

    - `Φ` is linear in each argument, and `field(i, …)` is `∂Φ/∂x_i` by autograd;
    - `accumulate_grad(w, …)` adds `Σ w ∂Φ/∂parameters` to the gradients that are there, for a number and for one weight
      a sample, with any leading axes, an empty batch included;
    - the dtype is kept, and everything works on `device="meta"`.

    `shapes` are the shapes of the layers; they can be left out if the coupling fixes them itself.

    >>> check_coupling(Dense(4, 3))
    """
    generator = random_generator(generator=generator)
    if shapes is None:
        shapes = [shape for shape in coupling.shapes if shape is not None]
    if len(shapes) != len(coupling.shapes):
        raise ValueError(f"`shapes` must name {len(coupling.shapes)} layers for {coupling!r}. Got {shapes}.")
    precise = copy.deepcopy(coupling).double()
    with torch.no_grad():
        for parameter in precise.parameters():
            parameter.copy_(draw_normal(parameter, generator=generator))
    for batch in _BATCHES:
        xs = [draw_normal(torch.empty(*batch, *shape).double(), generator=generator) for shape in shapes]
        _check_fields(precise, xs, batch)
        _check_linear(precise, xs, batch, generator)
        _check_gradient(precise, xs, batch, generator)
    _check_places(coupling, shapes)


def _check_fields(coupling: Coupling, xs: list[Tensor], batch: tuple[int, ...]) -> None:
    for to in range(len(xs)):
        points = [x.clone().requires_grad_() for x in xs]
        value = coupling(*points)
        require_shape(value, batch, what=f"{coupling!r}: Φ of a batch of shape {batch}")
        (slope,) = torch.autograd.grad(value.sum(), points[to], materialize_grads=True)
        field = coupling.field(to, *(x for i, x in enumerate(xs) if i != to)).detach()
        what = f"{coupling!r}: the field on layer {to} against ∂Φ/∂x"
        try:
            wide = field.expand_as(slope)
        except RuntimeError as error:
            raise ContractError(f"{what}: the shape is {tuple(field.shape)}, not {tuple(slope.shape)}.") from error
        require_close(wide, slope, tolerance=_TOLERANCE, what=what)
        if len(xs) > 1:
            _check_biased(coupling, to, [x for i, x in enumerate(xs) if i != to], field, slope.shape[len(batch) :])


def _check_biased(coupling: Coupling, to: int, others: list[Tensor], field: Tensor, shape: tuple[int, ...]) -> None:
    """Hold the field with a bias against their sum: a bias of each unit, and one shared by the places of a channel."""
    whole = torch.arange(1.0, 1 + math.prod(shape), dtype=field.dtype).view(shape)
    shared = whole[(slice(None), *(slice(1),) * (len(shape) - 1))]
    for bias in (whole, shared):
        for with_gradient in (True, False):
            with torch.set_grad_enabled(with_gradient):
                found = coupling.biased_field(bias, to, *others).detach()
            what = f"{coupling!r}: the field on layer {to} with a bias of shape {tuple(bias.shape)} against their sum"
            require_close(found.expand_as(field), field + bias, tolerance=_TOLERANCE, what=what)


def _check_linear(coupling: Coupling, xs: list[Tensor], batch: tuple[int, ...], generator: torch.Generator) -> None:
    for i, x in enumerate(xs):
        other = draw_normal(x, generator=generator)

        def phi(value: Tensor, i: int = i) -> Tensor:
            return coupling(*(value if j == i else y for j, y in enumerate(xs))).detach()

        require_close(
            phi(2.0 * x - 0.5 * other),
            2.0 * phi(x) - 0.5 * phi(other),
            tolerance=_TOLERANCE,
            what=f"{coupling!r}: Φ(2x - y/2) against 2Φ(x) - Φ(y)/2 in layer {i}, batch {batch}",
        )


def _check_gradient(coupling: Coupling, xs: list[Tensor], batch: tuple[int, ...], generator: torch.Generator) -> None:
    parameters = dict(coupling.named_parameters())
    if not parameters:
        return
    weights: list[Tensor | float] = [1.0, -0.5, draw_normal(torch.empty(batch).double(), generator=generator)]
    for weight in weights:
        value = (coupling(*xs) * weight).sum()
        exact = torch.autograd.grad(value, list(parameters.values()), materialize_grads=True)
        for fresh in (True, False):
            for parameter in parameters.values():
                parameter.grad = None if fresh else torch.ones_like(parameter)
            coupling.accumulate_grad(weight, *xs)
            for (name, parameter), slope in zip(parameters.items(), exact, strict=True):
                what = f"{coupling!r}: accumulate_grad of {name} against autograd, batch {batch}, weight {weight}"
                if parameter.grad is None:
                    raise ContractError(f"{what}: there is no gradient.")
                require(not parameter.grad.requires_grad, f"{what}: the gradient carries a graph of its own.")
                require_close(parameter.grad, slope if fresh else slope + 1, tolerance=_TOLERANCE, what=what)


def _check_places(coupling: Coupling, shapes: Sequence[tuple[int, ...]]) -> None:
    for device in ("cpu", "meta"):
        for dtype in (torch.float32, torch.float64):
            copied = copy.deepcopy(coupling).to(device=device, dtype=dtype)
            xs = [torch.ones(2, *shape, device=device, dtype=dtype) for shape in shapes]
            copied.accumulate_grad(1.0, *xs)
            results = [copied(*xs), *(copied.field(i, *(xs[:i] + xs[i + 1 :])) for i in range(len(xs)))]
            results += [parameter.grad for parameter in copied.parameters() if parameter.grad is not None]
            for result in results:
                right = result.dtype == dtype and result.device.type == device
                require(right, f"{coupling!r}: a result is {result.dtype} on {result.device}, not {dtype} on {device}.")
            if device == "cpu":
                require(all(map(math.isfinite, results[0].tolist())), f"{coupling!r}: Φ(1, …, 1) is not finite.")
