"""How layers meet: a multilinear form of their statistics."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from harmonium.draws import draw_normal
from harmonium.memory import check_parameter
from harmonium.types import Shaped

Shapes = tuple[tuple[int, ...], ...]
"""The shapes of the layers that a coupling ties."""


class Coupling(nn.Module, ABC):
    """A multilinear form `Φ(x₁, …, x_k)`; the field that it puts on layer i is `∂Φ/∂x_i`.

    A new coupling needs `field`, `accumulate_grad` and `shapes`. Its arguments are statistics, `(*batch, *shape)`. The
    rest are hooks: what else the machine and learning may ask of a coupling.
    """

    shares_places: ClassVar[bool] = False
    """Whether all places of an image have the same parameters; the biases of its layers are then shared, too."""

    ties_itself: ClassVar[bool] = False
    """Whether it may tie a layer to itself: no unit then meets itself."""

    memory_format: ClassVar[torch.memory_format] = torch.contiguous_format
    """How it likes its layers to lie in memory."""

    unit_axis: ClassVar[int] = -1
    """The axis of its weights that counts the units of its last layer."""

    @classmethod
    def examples(cls) -> list[tuple[Self, Shapes]]:
        """Return small couplings of this kind with the shapes of their layers, which the contract is held to."""
        return []

    @property
    @abstractmethod
    def shapes(self) -> tuple[tuple[int, ...] | None, ...]:
        """The shape of each layer that it ties; None where any shape of the right rank will do."""

    @abstractmethod
    def field(self, to: int, *others: Tensor) -> Tensor:
        """Return `∂Φ/∂x_to` given the other layers, in order: a new tensor, unless there are no others."""

    def biased_field(self, bias: Tensor, to: int, *others: Tensor) -> Tensor:
        """Return `b + ∂Φ/∂x_to`, a new tensor. A hook of couplings that add a bias on the way, which saves a pass."""
        field = self.field(to, *others)
        return field + bias if torch.is_grad_enabled() else field.add_(bias)

    @abstractmethod
    def accumulate_grad(self, weight: Tensor | float, *xs: Tensor) -> None:
        """Add `Σ_batch weight · ∂Φ/∂parameters` to the gradients, in closed form and in place.

        `weight` is a number, or a tensor with one value a sample.
        """

    def check_layers(self, names: Sequence[str], layers: Sequence[Shaped]) -> None:
        """Raise unless the layers have the shapes that it ties."""
        if len(names) != len(self.shapes):
            raise ValueError(f"{self!r} ties {len(self.shapes)} layers. Got {tuple(names)}. Name one for each.")
        for name, layer, shape in zip(names, layers, self.shapes, strict=True):
            if shape is not None and shape != layer.shape:
                raise ValueError(
                    f"{self!r} needs shape {shape} at layer {name!r}. Got {layer!r}. "
                    "Give the coupling the shapes of its layers."
                )

    @property
    def multiplies_bytes(self) -> bool:
        """Whether layers of whole numbers are multiplied as bytes."""
        return False

    def gates(self, gate: int, other: int) -> bool:
        """Return whether unit j of layer `gate` meets only the entries `(j, …)` of layer `other`.

        Then Φ is a sum over j, and the units of the gate can be summed out one by one.
        """
        return False

    def weights(self) -> list[nn.Parameter]:
        """Return the parameters that decay and norm limits act on."""
        return list(self.parameters())

    def fans(self) -> tuple[int, int]:
        """Return how many units of the first layer act on one of the last, and the other way."""
        raise TypeError(f"{self!r} has no count of the units that act on a unit. Use Dense or Conv2d.")

    def forward(self, *xs: Tensor) -> Tensor:
        """Return `Φ(x₁, …, x_k) = x₁ · ∂Φ/∂x₁`, `(*batch,)`."""
        product = self.field(0, *xs[1:]) * xs[0]
        shape = self.shapes[0]
        return product.flatten(product.ndim - (3 if shape is None else len(shape))).sum(-1)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that were given to the constructor."""
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names if name != "generator"}

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.arguments().items())
        return f"{type(self).__name__}({inside})"


def as_shape(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape: a bare number is a layer of one axis."""
    return (shape,) if isinstance(shape, int) else tuple(shape)


def flatten_layer(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return `(*batch, *shape)` as `(*batch, n)`."""
    return x if len(shape) == 1 else x.flatten(x.ndim - len(shape))


def as_rows(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return `(*batch, *shape)` as a matrix `(n_samples, n)`."""
    return x if x.ndim == 2 and len(shape) == 1 else x.reshape(-1, math.prod(shape))


def small_normal(*shape: int, generator: torch.Generator | None, scale: float = 0.01) -> nn.Parameter:
    """Return a parameter drawn from `N(0, scale²)`: Hinton's (2012) choice for the weights of a new machine."""
    check_parameter(shape)
    return nn.Parameter(draw_normal(torch.empty(shape), generator=generator) * scale)
