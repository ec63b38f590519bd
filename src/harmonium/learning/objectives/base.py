"""What an objective is: a loss, its gradient, what it carries from update to update, and what it measures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from harmonium.models.layers import data_layer
from harmonium.types import State, as_state


class Phases(NamedTuple):
    """The two states whose energies are contrasted, hidden layers at their means where they are known.

    `hidden` names the layers that no row of the batch held.
    """

    positive: State
    negative: State
    hidden: tuple[str, ...] = ()


class Case(NamedTuple):
    """A model, a law of data and an objective that have nothing to learn: the gradient is zero on average.

    `objective(generator=…)` makes the objective, its chains at the law of the model if it has any; `draw(n,
    generator=…)` draws a batch.
    """

    objective: Callable[..., Objective]
    model: nn.Module
    draw: Callable[..., State]


class Objective(ABC):
    """What is made small. A new objective needs `loss`; the rest are hooks with defaults.

    A batch is a state: a mapping from the names of layers to their values; a bare tensor is the data layer.
    """

    n_steps: int | None = None
    """The steps that chains take in an update, for objectives that run chains: a guard may raise it."""

    n_chains: int | None = None
    """The chains that it runs, for objectives that have a number of them: workers share them out."""

    persistent: ClassVar[bool] = False
    """Whether chains go on from update to update, so that it can be watched how they mix."""

    weighs_rows: ClassVar[bool] = False
    """Whether rows of the data may have weights."""

    sums_out_holes: ClassVar[bool] = False
    """Whether single unknown values (NaN) are its own business; otherwise they are drawn before it sees a batch."""

    def divides(self, model: nn.Module) -> bool:
        """Return whether several workers may share the rows and chains of this model; otherwise each does all of it.

        In a part (`workers`) the loss is then its share: terms of its rows over the rows of the whole, so that shares
        of all workers add up (`workers.mean`), and so do their gradients and what was `measured`. A class of your own
        says so itself, since what it inherits may no longer be true of it.
        """
        return False

    def chain_axis(self) -> int | None:
        """Return the axis that counts chains in the tensors of `state_dict`, None where nothing in it is divided."""
        return None

    @classmethod
    def examples(cls) -> list[Case]:
        """Return cases in which there is nothing to learn, which the contract is held to; none if no law is its."""
        return []

    def check(self, model: nn.Module) -> None:  # noqa: B027  (a hook: most train any model)
        """Raise a TypeError unless it can train this model."""

    @abstractmethod
    def loss(
        self, model: nn.Module, batch: Tensor | Mapping[str, Tensor], *, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the mean loss of a batch, differentiable in the parameters."""

    def accumulate_grad(
        self,
        model: nn.Module,
        batch: Tensor | Mapping[str, Tensor],
        *,
        weight: Tensor | None = None,
        index: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Phases | None:
        """Add the gradient of the loss to the gradients: by autograd, unless there is a closed form.

        `weight` has one value a sample, `index` the numbers of the rows in the data. Returns the two phases of a
        contrast, for those who look on.
        """
        if weight is not None:
            raise ValueError(f"{type(self).__name__} has no weights of rows. Leave `weights` out.")
        with torch.enable_grad():
            self.loss(model, batch, generator=generator).backward()
        return None

    def parameters(self) -> Iterator[nn.Parameter]:
        """Return parameters of its own that learn with those of the model."""
        return iter(())

    def measured(self) -> dict[str, float]:
        """Return what the last update measured, by its name."""
        return {}

    def state_dict(self) -> State:
        """Return what must survive between updates."""
        return {}

    def load_state_dict(self, state: State) -> None:  # noqa: B027  (a hook: most carry nothing)
        """Take it up again."""


def add_scaled(
    factor: float,
    objective: Objective,
    model: nn.Module,
    batch: Tensor | Mapping[str, Tensor],
    *,
    weight: Tensor | None = None,
    index: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> Phases | None:
    """Add `factor` times the gradient of an objective to the gradients of a model; return its phases."""
    kept = {p: p.grad.clone() for p in model.parameters() if p.grad is not None} if factor != 1.0 else {}
    if kept:
        model.zero_grad(set_to_none=False)
    phases = objective.accumulate_grad(model, batch, weight=weight, index=index, generator=generator)
    for p in model.parameters():
        if factor != 1.0 and p.grad is not None:
            p.grad.mul_(factor)
            if p in kept:
                p.grad.add_(kept[p])
    return phases


def data_alone(model: nn.Module, batch: Tensor | Mapping[str, Tensor], objective: Objective) -> Tensor:
    """Return the data layer of a batch for an objective that learns from it alone."""
    layer = data_layer(model)
    state = as_state(batch, layer)
    if set(state) != {layer}:
        raise ValueError(
            f"{type(objective).__name__} learns from layer {layer!r} alone. Got {list(state)}. Leave the others out."
        )
    return state[layer]


def require_objective(objective: object) -> None:
    """Raise unless this is an objective."""
    if not isinstance(objective, Objective):
        raise TypeError(
            f"`objective` must be an Objective, such as CD() or PCD(). Got {objective!r}. A loss of your own is a "
            "class with a method `loss(model, batch, *, generator=None)` that extends Objective."
        )
