"""The heart: named layers, the couplings between them, and all that follows from the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from harmonium.couplings import Coupling
from harmonium.types import State, as_state, check_dtype, weighted_sum, without_gradient
from harmonium.units import Units

if TYPE_CHECKING:
    from harmonium.models.tempered import Tempered


class BoltzmannMachine(nn.Module):
    """Layers plus couplings: `E(x) = -Σ_l log μ_l(x_l) - Σ_c Φ_c(x)`, `p(x) = e^{-E(x)}/Z`.

    `units` names the layers; the first is the data layer. `terms` says which layers each coupling ties, in order.

    >>> machine = BoltzmannMachine(
    ...     {"x": Bernoulli(3)}, [(("x", "x"), Symmetric(3)), (("x",), Bias(3))]
    ... )
    >>> machine.energy({"x": torch.ones(2, 3)})
    tensor([-0., -0.], grad_fn=<SubBackward0>)
    """

    def __init__(self, units: Mapping[str, Units], terms: Sequence[tuple[tuple[str, ...], Coupling]]) -> None:
        super().__init__()
        self.units = nn.ModuleDict(units)
        self._layers = dict(units)  # the same units, without the cost of looking up a submodule
        self.terms = [(tuple(layers), coupling) for layers, coupling in terms]
        self.couplings = nn.ModuleList(coupling for _, coupling in self.terms)
        for layers, coupling in self.terms:
            self._check_term(layers, coupling)
        # What follows from the graph, looked up many times in every update.
        self._acting = {
            name: [
                (coupling, to, layers[:to] + layers[to + 1 :])
                for layers, coupling in self.terms
                for to, end in enumerate(layers)
                if end == name
            ]
            for name in self._layers
        }
        pairs = (p for layers, _ in self.terms for p in permutations(layers, 2))
        self._tied = frozenset(pairs)
        self._blocks = _independent_blocks(tuple(self._layers), self._tied)

    def _check_term(self, layers: tuple[str, ...], coupling: Coupling) -> None:
        if len(layers) != len(coupling.shapes):
            raise ValueError(f"{coupling!r} ties {len(coupling.shapes)} layers. Got {layers}. Name one for each.")
        for layer, shape in zip(layers, coupling.shapes, strict=True):
            if layer not in self.units:
                raise ValueError(f"A term names layer {layer!r}. The layers are {list(self.units)}. Use one of them.")
            if shape is not None and shape != self.layer(layer).shape:
                raise ValueError(
                    f"{coupling!r} needs shape {shape} at layer {layer!r}. Got {self.layer(layer)!r}. "
                    "Give the coupling the shapes of its layers."
                )

    @property
    def data_layer(self) -> str:
        """The name of the layer that holds the data: the first."""
        return next(iter(self._layers))

    def layer(self, name: str) -> Units:
        """Return the units of a layer."""
        return self._layers[name]

    def state(self, x: Tensor | Mapping[str, Tensor]) -> State:
        """Return `x` as a state, its layers checked for shape: a bare tensor is the data layer."""
        state = as_state(x, self.data_layer)
        if not state:
            raise ValueError(f"The state is empty. Give at least one of the layers {list(self.units)}.")
        parameter = self._some_parameter()
        for name, value in state.items():
            if name not in self._layers:
                raise ValueError(f"The state names layer {name!r}. The layers are {list(self.units)}. Use one of them.")
            self.layer(name).check_shape(value, name)
            if parameter is not None:
                check_dtype(value, parameter, name=name)
        return state

    def _some_parameter(self) -> Tensor | None:
        for _, coupling in self.terms:
            for parameter in coupling._parameters.values():
                return parameter
        return next(self.parameters(), None)

    def field(self, layer: str, state: State) -> Tensor:
        """Return the field on a layer, `Σ_c ∂Φ_c/∂x_layer`, given the layers tied to it. A hook of tempering."""
        full = (*batch_shape(self, state), *self._layers[layer].shape)
        total: Tensor | None = None
        for coupling, to, others in self._acting[layer]:
            part = coupling.field(to, *self._statistics(state, others, layer))
            if total is None:
                total, ours = part, bool(others)
            elif ours and total.shape == full and not torch.is_grad_enabled():
                total.add_(part)  # a product that nobody else holds
            else:
                total, ours = total + part, True
        if total is None:
            total = next(iter(state.values())).new_zeros(self._layers[layer].shape)
        return total if total.shape == full else total.expand(torch.broadcast_shapes(total.shape, full))

    def _statistics(self, state: State, layers: tuple[str, ...], target: str) -> list[Tensor]:
        for name in layers:
            if name not in state:
                raise ValueError(f"The field on {target!r} needs layer {name!r}, which the state does not hold.")
        return [self._layers[name].statistic(state[name]) for name in layers]

    def interaction(self, state: State) -> Tensor:
        """Return `Σ_c Φ_c(x)` of the terms whose layers are all there, `(*batch,)`. A hook of tempering."""
        total: Tensor | float = 0.0
        for layers, coupling in self.terms:
            if all(name in state for name in layers):
                total = total + coupling(*(self.layer(name).statistic(state[name]) for name in layers))
        some = next(iter(state.values()))
        return total + some.new_zeros(batch_shape(self, state))

    def energy(self, state: Tensor | Mapping[str, Tensor]) -> Tensor:
        """Return `E(x)`, `(*batch,)`; layers left out are summed out: `-log Σ_missing e^{-E}` in closed form.

        `E = -Σ log μ(x) - Σ Φ(x) - Σ_missing A(field)`. Missing layers that a coupling ties to each other cannot be
        summed out so; the error names the layer to give.
        """
        present = self.state(state)
        missing = [name for name in self.units if name not in present]
        self._check_closed(missing)
        total = -self.interaction(present)
        for name, value in present.items():
            total = total - self.layer(name).total(self.layer(name).log_base(value))
        for name in missing:
            total = total - self.layer(name).total(self.layer(name).log_partition(self.field(name, present)))
        return total

    def _check_closed(self, missing: Sequence[str]) -> None:
        for layers, coupling in self.terms:
            tied = [name for name in layers if name in missing]
            if len(tied) > 1:
                raise ValueError(
                    f"The energy of this partial state is intractable: {type(coupling).__name__} ties the missing "
                    f"layers {tied[0]!r} and {tied[1]!r}. Give layer {tied[-1]!r} in the state."
                )

    def free_energy(self, x: Tensor | Mapping[str, Tensor]) -> Tensor:
        """Return `F(x) = -log Σ_h e^{-E(x, h)}` of data, checked for its support."""
        state = self.state(x)
        for name, value in state.items():
            self.layer(name).check_support(value, name)
        return self.energy(state)

    @without_gradient
    def sample(self, layer: str, state: State, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw a layer given the layers tied to it."""
        return self.layer(layer).sample(self.field(layer, state), generator=generator)

    def mean(self, layer: str, state: State) -> Tensor:
        """Return the mean of a layer given the layers tied to it."""
        return self.layer(layer).mean(self.field(layer, state))

    def infer(self, x: Tensor | Mapping[str, Tensor]) -> State:
        """Return the state with the missing layers at their means given the others: exact where none are tied."""
        return self._inferred(self.state(x))

    def _inferred(self, present: State) -> State:
        missing = [name for name in self._layers if name not in present]
        self._check_closed(missing)
        return present | {name: self.mean(name, present) for name in missing}

    def ties(self, first: str, second: str) -> bool:
        """Return whether a coupling ties two layers, or a layer to itself."""
        return (first, second) in self._tied

    def blocks(self) -> list[tuple[str, ...]]:
        """Return groups of layers that no coupling ties: each is drawn at once given the others."""
        return list(self._blocks)

    def tempered(self, beta: Tensor | float, reference: Tensor | Mapping[str, Tensor] | None = None) -> Tempered:
        """Return the machine at inverse temperature β: couplings times β, plus (1 - β) times a reference field."""
        from harmonium.models.tempered import Tempered  # it extends this class

        return Tempered(self, beta, reference)

    @without_gradient
    def accumulate_grad(self, state: Tensor | Mapping[str, Tensor], weight: Tensor | float = 1.0) -> None:
        """Add `Σ_batch weight · ∂E/∂parameters` of a (partial) state to the gradients, in closed form.

        `∂E/∂W = -∂Φ/∂W` at the values of the present layers and the means of the missing ones, since Φ is multilinear.
        """
        present = self.state(state)
        self.add_gradient(self._inferred(present), weight, present)

    def add_gradient(self, full: State, weight: Tensor | float, present: State | None = None) -> None:
        """Add the gradient at a full state as `accumulate_grad` does, unchecked: for the inner loop of learning.

        Layers that `present` leaves out stand at their means and count as summed out.
        """
        given = full if present is None else present
        scale = self.coupling_weight(weight, given)
        statistics = {name: units.statistic(full[name]) for name, units in self._layers.items()}
        for layers, coupling in self.terms:
            if _learns(coupling):
                coupling.accumulate_grad(-scale, *[statistics[name] for name in layers])
        for name, units in self._layers.items():
            if _learns(units):
                work = weighted_sum(self.field(name, full) * statistics[name], weight, units.shape)
                units.accumulate_grad(weight, work, full[name], summed_out=name not in given)

    def coupling_weight(self, weight: Tensor | float, state: State) -> Tensor | float:
        """Return the weight of the couplings in the gradient of each sample. A hook of tempering."""
        return weight

    @without_gradient
    def initial(self, n: int, *, generator: torch.Generator | None = None) -> State:
        """Draw `n` states to start chains from: each layer under its own biases alone."""
        return {
            name: self.layer(name).sample(self.bias_field(name).expand(n, *self.layer(name).shape), generator=generator)
            for name in self.units
        }

    def bias_field(self, layer: str) -> Tensor:
        """Return the field on a layer when all couplings but its biases are off."""
        some = next(self.parameters())
        field = torch.zeros(self.layer(layer).shape, dtype=some.dtype, device=some.device)
        for layers, coupling in self.terms:
            if layers == (layer,):
                field = field + coupling.field(0)
        return field.detach()


def _independent_blocks(layers: tuple[str, ...], tied: frozenset[tuple[str, str]]) -> tuple[tuple[str, ...], ...]:
    """Put each layer into the first block that holds none tied to it."""
    groups: list[list[str]] = []
    for name in layers:
        free = (group for group in groups if not any((name, other) in tied for other in group))
        group = next(free, None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    return tuple(tuple(group) for group in groups)


def _learns(module: nn.Module) -> bool:
    # As any(p.requires_grad for p in module.parameters()), which costs more than a small product.
    for parameter in module._parameters.values():
        if parameter is not None and parameter.requires_grad:
            return True
    return bool(module._modules) and any(m is not None and _learns(m) for m in module._modules.values())


def batch_shape(machine: BoltzmannMachine, state: State) -> tuple[int, ...]:
    """Return the leading axes of a state."""
    for name, value in state.items():
        return machine.layer(name).batch_shape(value)
    return ()
