"""Unit activations: the curve g that a multinary unit follows, its integral and its inverse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

from harmonium.types import softplus

_N_PANELS, _N_NODES = 24, 16
_SHARPNESS = 10.0


@dataclass(frozen=True)
class Activation:
    """A monotone curve g from 0 to 1 (section 3.2 of Hwang et al. 2020): `integral` is ∫₀ˣ g up to a constant.

    Only `value` must be given. The integral is found by quadrature, the inverse by bisection and the slope, g' as a
    function of g, by automatic differentiation where not known.

    >>> Activation("step", lambda x: (x.atan() / torch.pi + 0.5)).primitive(torch.tensor([0.0]))
    tensor([0.])
    """

    name: str
    value: Callable[[Tensor], Tensor]
    integral: Callable[[Tensor], Tensor] | None = None
    inverse: Callable[[Tensor], Tensor] | None = None
    slope: Callable[[Tensor], Tensor] | None = None

    def primitive(self, x: Tensor) -> Tensor:
        """Return the integral of g, in closed form where known, else by Gauss-Legendre panels halved towards zero."""
        if self.integral is not None:
            return self.integral(x)
        nodes, weights = _graded_quadrature()
        points = x.unsqueeze(-1) * nodes.to(x)
        return x * (self.value(points) * weights.to(x)).sum(-1)

    def argument(self, value: Tensor) -> Tensor:
        """Return x with g(x) = value."""
        if self.inverse is not None:
            return self.inverse(value)
        low, high = torch.full_like(value, -1e6), torch.full_like(value, 1e6)
        for _ in range(100):
            middle = (low + high) / 2
            above = self.value(middle) > value
            low, high = torch.where(above, low, middle), torch.where(above, middle, high)
        return (low + high) / 2

    def __repr__(self) -> str:
        return self.name


@cache
def _graded_quadrature() -> tuple[Tensor, Tensor]:
    """Return nodes and weights on [0, 1], in panels [2^{-j-1}, 2^{-j}]: the bend of g lies near zero."""
    base, weight = np.polynomial.legendre.leggauss(_N_NODES)
    edges = [1.0 / 2**j for j in range(_N_PANELS)] + [0.0]
    nodes, weights = [], []
    for high, low in zip(edges[:-1], edges[1:], strict=True):
        nodes.append(low + (high - low) * (base + 1) / 2)
        weights.append(weight * (high - low) / 2)
    return torch.from_numpy(np.concatenate(nodes)), torch.from_numpy(np.concatenate(weights))


def _relu_integral(x: Tensor) -> Tensor:
    g = x.clamp(0, 1)  # 0, x²/2 and x - ½, without a choice by booleans, which takes three times as long
    return g * (torch.maximum(x, g) - g / 2)


def _sigmoid_slope(value: Tensor) -> Tensor:
    return torch.addcmul(value, value, value, value=-1.0)


def _soft_clip(x: Tensor) -> Tensor:
    return (softplus(_SHARPNESS * x) - softplus(_SHARPNESS * (x - 1))) / _SHARPNESS


def _soft_clip_inverse(value: Tensor) -> Tensor:
    # (1 + e^{sx}) = e^{sg} (1 + e^{s(x-1)}) solved for e^{sx}.
    s = _SHARPNESS
    return torch.special.expm1(s * value).log() / s - (-torch.special.expm1(s * (value - 1))).log() / s


ACTIVATIONS: dict[str, Activation] = {
    a.name: a
    for a in (
        Activation("sigmoid", torch.sigmoid, softplus, torch.logit, _sigmoid_slope),
        Activation("relu", lambda x: x.clamp(0, 1), _relu_integral, lambda y: y),
        Activation(
            "tanh",
            lambda x: (1 + x.tanh()) / 2,
            lambda x: softplus(2 * x) / 2,
            lambda y: y.logit() / 2,
            lambda y: 2 * _sigmoid_slope(y),
        ),
        Activation("softplus", _soft_clip, None, _soft_clip_inverse),
    )
}
"""The activations known by name: sigmoid; relu clipped at 1; (1 + tanh)/2; a clipped ramp with softplus corners."""


def find_activation(activation: str | Activation) -> Activation:
    """Return the activation of this name, or the activation itself."""
    if isinstance(activation, Activation):
        return activation
    if activation not in ACTIVATIONS:
        names = ", ".join(ACTIVATIONS)
        raise ValueError(f"`activation` must be one of {names}, or an Activation. Got {activation!r}.")
    return ACTIVATIONS[activation]
