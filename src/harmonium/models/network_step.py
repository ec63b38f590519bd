"""A stack of machines as an ordinary network: what goes up by means, and an output for each class."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from harmonium.couplings import Conv2d, Coupling, Dense
from harmonium.models.mean import Mean
from harmonium.units import Bernoulli, Gaussian, MaxPooled, Multinary, Spin, Units

_ACTIVATIONS: dict[type[Units], type[nn.Module]] = {Bernoulli: nn.Sigmoid, Spin: nn.Tanh}


@dataclass(frozen=True)
class NetworkStep:
    """One layer above another: `mean(bias + W s(x))` with `x = scale · z + shift` of the values z that come in.

    `factor` multiplies what comes from below.
    """

    below: Units
    coupling: Coupling
    bias: Tensor
    above: Units
    factor: float = 1.0
    scale: float = 1.0
    shift: float = 0.0


@torch.no_grad()
def to_network(
    steps: Sequence[NetworkStep], n_classes: int, *, weight: Tensor | None = None, bias: Tensor | None = None
) -> nn.Sequential:
    """Return the steps as a network with `n_classes` outputs, all parameters copied.

    Its layers are PyTorch's own, but for the means of units that PyTorch has no activation for (`Mean`). The means
    `N g(kθ)` of smooth units with levels are passed on as g, N times smaller, so that all layers learn on one scale.
    The outputs start at `weight`, `(n_classes, n)`, and `bias`; without them at zero, so that all classes are equally
    probable until they learn.
    """
    if n_classes < 2:
        raise ValueError(f"`n_classes` must be at least 2. Got {n_classes}.")
    modules: list[nn.Module] = []
    shape, range_below = steps[0].below.shape, 1.0
    for step in steps:
        if len(step.below.shape) == 1 and len(shape) > 1:
            modules.append(nn.Flatten())
        above, range_above = _with_unit_range(step.above)
        modules += _layer(replace(step, above=above, scale=step.scale * range_below))
        shape, range_below = step.above.shape, range_above
    if len(shape) > 1:
        modules.append(nn.Flatten())
    some = steps[-1].bias
    head = _linear(some.new_zeros(math.prod(shape), n_classes), some.new_zeros(n_classes))
    if weight is not None:
        head.weight.copy_(weight)
    if bias is not None:
        head.bias.copy_(bias)
    return nn.Sequential(*modules, head)


def _layer(step: NetworkStep) -> list[nn.Module]:
    """Return a step as modules: the flattening that it needs, the linear map, the activation."""
    slope = step.below.statistic(step.bias.new_ones(step.below.shape)) * step.factor
    first: list[nn.Module] = []
    if isinstance(step.coupling, Dense):
        weight = step.coupling.weight * slope.reshape(-1, 1)
        first = [nn.Flatten()] if len(step.below.shape) > 1 else []
        linear: nn.Module = _linear(weight * step.scale, step.bias.flatten() + step.shift * weight.sum(0))
    elif isinstance(step.coupling, Conv2d) and step.shift == 0 and bool((slope == slope.flatten()[0]).all()):
        linear = _convolution(step.coupling, step.bias, float(slope.flatten()[0]) * step.scale)
    else:
        raise TypeError(f"to_network has no layer of PyTorch for {step.coupling!r} above {step.below!r}.")
    if _is_steep_sigmoid(step.above):
        for parameter in linear.parameters():
            parameter.mul_(float(step.above.steepness))
    return [*first, linear, *_activation(step.above)]


def _with_unit_range(units: Units) -> tuple[Units, float]:
    """Return units whose mean is `g(kθ)` where that of these is `N g(kθ)`, and N; other units as they are, and 1."""
    if not isinstance(units, Multinary) or units.exact:
        return units, 1.0
    return Multinary(*units.shape, levels=1, k=units.steepness, activation=units.activation), float(units.levels)


def _is_steep_sigmoid(units: Units) -> bool:
    """Return whether the mean is `σ(kθ)`: k then goes into the weights."""
    return isinstance(units, Multinary) and not units.exact and units.levels == 1 and units.activation == "sigmoid"


def _activation(units: Units) -> list[nn.Module]:
    """Return what makes means of fields, k aside: a module of PyTorch where there is one."""
    if isinstance(units, Gaussian):
        return []
    if _is_steep_sigmoid(units):
        return [nn.Sigmoid()]
    if isinstance(units, MaxPooled):
        raise TypeError(f"to_network has no layer of PyTorch for {units!r}: what it passes up is pooled.")
    known = _ACTIVATIONS.get(type(units))
    return [Mean(copy.deepcopy(units)) if known is None else known()]


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    layer = nn.utils.skip_init(nn.Linear, *weight.shape, dtype=weight.dtype, device=weight.device)
    layer.weight.copy_(weight.t())
    layer.bias.copy_(bias)
    return layer


def _convolution(coupling: Conv2d, bias: Tensor, factor: float) -> nn.Conv2d:
    weight = coupling.weight
    layer = nn.utils.skip_init(
        nn.Conv2d,
        coupling.lower_channels,
        coupling.upper_channels,
        coupling.kernel,
        stride=coupling.stride,
        padding=coupling.padding,
        dtype=weight.dtype,
        device=weight.device,
    )
    layer.weight.copy_(weight * factor)
    layer.bias.copy_(bias.flatten().expand(coupling.upper_channels))
    return layer
