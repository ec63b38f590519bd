"""The heart: named layers, the couplings between them, and all that follows from the graph."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from harmonium.couplings import Symmetric
from harmonium.display import svg_graph
from harmonium.models.gate_fields import (
    draw_gate,
    gate_fields,
    gate_log_weights,
    gate_means,
    gate_moments,
    gate_probabilities,
)
from harmonium.models.graph import MAX_ENUMERATED, Graph, Term
from harmonium.models.stored import Stored
from harmonium.models.summation import add_counted_gradient, configurations, count, draw_counted, expected
from harmonium.types import Filled, State, Values, as_state, check_dtype, weighted_sum, without_gradient
from harmonium.units import Units


class BoltzmannMachine(Stored):
    """Layers plus couplings: `E(x) = -Σ_l log μ_l(x_l) - Σ_c Φ_c(x)`, `p(x) = e^{-E(x)}/Z`.

    `units` names the layers; the first that is not given is the data layer. `terms` says which layers each coupling
    ties, in order. Layers named in `given` are conditions: they have values and couplings and no law, so that the
    machine is `p(x | given)`; couplings see their values as they are.

    A state names the layers that it holds. One that it leaves out is hidden, whatever its place in the graph: an energy
    sums it out.

    >>> machine = BoltzmannMachine(
    ...     {"x": Bernoulli(3)}, [(("x", "x"), Symmetric(3)), (("x",), Bias(3))]
    ... )
    >>> machine.energy({"x": torch.ones(2, 3)})
    tensor([-0., -0.], grad_fn=<SubBackward0>)
    """

    def __init__(self, units: Mapping[str, Units], terms: Sequence[Term], *, given: Iterable[str] = ()) -> None:
        super().__init__()
        self.units = nn.ModuleDict(units)
        self.graph = Graph(units, terms, given)
        self.couplings = nn.ModuleList(coupling for _, coupling in self.graph.terms)

    def project(self) -> None:
        """Bring the parameters back to where the law is proper, after each update: a hook for models that need it."""

    @property
    def remembers(self) -> bool:
        """Whether the values of its conditions follow from its parameters: autograd then takes the gradient."""
        return False

    @property
    def terms(self) -> list[Term]:
        """The couplings, each with the layers that it ties."""
        return self.graph.terms

    @property
    def given(self) -> tuple[str, ...]:
        """The layers that are conditions."""
        return self.graph.given

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers that have a law: all that are not given."""
        return tuple(self.graph.layers)

    @property
    def data_layer(self) -> str:
        """The name of the layer that a bare tensor stands for: the first that has a law."""
        return next(iter(self.graph.layers))

    def stored_names(self) -> dict[str, str]:
        """Return the name of each parameter in a file: `visible-hidden.weight`, `visible.bias`, `visible.log_sigma`."""
        names, taken = super().stored_names(), set[str]()
        for i, (layers, _) in enumerate(self.graph.terms):
            tied = "-".join(layers)
            while tied in taken:  # a second coupling of the same layers
                tied += "'"
            taken.add(tied)
            prefix = f"couplings.{i}."
            names |= {key: f"{tied}.{key.removeprefix(prefix)}" for key in names if key.startswith(prefix)}
        return names | {key: key.removeprefix("units.") for key in names if key.startswith("units.")}

    def _repr_html_(self) -> str:
        """Return the graph as a small picture, for notebooks."""
        n = sum(parameter.numel() for parameter in self.parameters())
        graph = svg_graph(
            {name: repr(units) for name, units in self.graph.all_layers.items()}, self._ties(), self.given
        )
        return f"<div><b>{type(self).__name__}</b>, {n:,} parameters<br>{graph}</div>"

    def _ties(self) -> list[tuple[str, ...]]:
        return [layers for layers, _ in self.graph.terms]

    def layer(self, name: str) -> Units:
        """Return the units of a layer."""
        return self.graph.all_layers[name]

    def state(self, x: Values | Mapping[str, Values]) -> State:
        """Return `x` as a state, its layers checked: a bare tensor is the data layer, conditions must be there."""
        parameter = self._some_parameter()
        state = as_state(x, self.data_layer, like=parameter)
        if not state and not self.graph.given:
            raise ValueError(f"The state is empty. Give at least one of the layers {list(self.graph.layers)}.")
        for name, value in state.items():
            if name not in self.graph.all_layers:
                raise ValueError(f"The state names layer {name!r}. The layers are {list(self.units)}. Use one of them.")
            units = self.layer(name)
            state[name] = value = units.encoded(value, like=parameter)
            units.check_shape(value, name)
            if parameter is not None:
                check_dtype(value, parameter, name=name)
        for name in self.graph.given:
            if name not in state:
                raise ValueError(
                    f"Layer {name!r} is a condition of this machine and has no law. Give its value in the state: "
                    f"{{{self.data_layer!r}: …, {name!r}: …}}."
                )
        return state

    def _some_parameter(self) -> Tensor | None:
        for _, coupling in self.graph.terms:
            for parameter in coupling._parameters.values():
                return parameter
        return next(self.parameters(), None)

    def batch_shape(self, state: State) -> tuple[int, ...]:
        """Return the leading axes of a state; layers with fewer of them are broadcast."""
        shapes = {self.graph.all_layers[name].batch_shape(value) for name, value in state.items()}
        return next(iter(shapes)) if len(shapes) == 1 else tuple(torch.broadcast_shapes(*shapes))

    def field(self, layer: str, state: State, *, partial: bool = False) -> Tensor:
        """Return the field on a layer, `Σ_c ∂Φ_c/∂x_layer`, given the layers tied to it. A hook of tempering.

        A `partial` field leaves out the couplings to layers that the state does not hold.
        """
        full = (*self.batch_shape(state), *self.graph.all_layers[layer].shape)
        total: Tensor | None = None
        for coupling, to, others in self.graph.acting[layer]:  # biases first
            if partial and not all(name in state for name in others):
                continue
            statistics = self._statistics(state, others, layer)
            if total is None:
                total, ours = coupling.field(to, *statistics), bool(others)
            elif others and not ours:
                total, ours = coupling.biased_field(total, to, *statistics), True
            elif ours and total.shape == full and not torch.is_grad_enabled():
                total.add_(coupling.field(to, *statistics))  # to a product that nobody else holds
            else:
                total = total + coupling.field(to, *statistics)
        if total is None:
            total = self.zeros(self.graph.all_layers[layer].shape, state)
        return total if total.shape == full else total.expand(torch.broadcast_shapes(total.shape, full))

    def _statistics(self, state: State, layers: tuple[str, ...], target: str) -> list[Tensor]:
        for name in layers:
            if name not in state:
                raise ValueError(f"The field on {target!r} needs layer {name!r}, which the state does not hold.")
        return [self.statistic(name, state[name]) for name in layers]

    def statistic(self, layer: str, x: Tensor) -> Tensor:
        """Return what the couplings see of a layer: `s(x)`, and x itself where the layer is given."""
        return x if layer in self.graph.given else self.graph.all_layers[layer].statistic(x)

    def zeros(self, shape: tuple[int, ...], state: State) -> Tensor:
        """Return zeros of the dtype and on the device of a state, or of the parameters where it is empty."""
        some = next(iter(state.values()), None)
        like = self._some_parameter() if some is None else some
        return torch.zeros(shape) if like is None else like.new_zeros(shape)

    def interaction(self, state: State) -> Tensor:
        """Return `Σ_c Φ_c(x)` of the terms whose layers are all there, `(*batch,)`. A hook of tempering."""
        total: Tensor | float = 0.0
        for layers, coupling in self.graph.terms:
            if all(name in state for name in layers):
                total = total + coupling(*(self.statistic(name, state[name]) for name in layers))
        return total + self.zeros(self.batch_shape(state), state)

    def energy(self, state: Values | Mapping[str, Values]) -> Tensor:
        """Return `E(x)`, `(*batch,)`; layers left out are summed out: `-log Σ_missing e^{-E}`, exactly.

        `E = -Σ log μ(x) - Σ Φ(x) - Σ_missing A(field)` where no coupling ties the missing layers. Of tied ones a small
        layer is counted, its configurations one by one and the rest in closed form, or, where it is a gate over groups
        of units, unit by unit. Where there are too many configurations, the error names the layer to give.
        """
        present = self.state(state)
        summation = self.graph.summation(self._missing(present))
        if summation.counted:
            return -(-self.energy(present | configurations(self, summation.counted, present))).logsumexp(0)
        total = self.energy_under(present, {name: self.field(name, present) for name in summation.closed})
        if summation.gate is None:
            return total
        weights = gate_log_weights(self, summation, gate_fields(self, summation, present))
        return total - self.layer(summation.gate).total(weights.logsumexp(-1))

    def energy_under(self, present: State, fields: State) -> Tensor:
        """Return `-Σ log μ(x) - Σ Φ(x) - Σ A(θ)` of the layers that are there and of those under these fields."""
        total = -self.interaction(present)
        for name, value in present.items():
            if name in self.graph.layers:
                total = total - self.layer(name).total(self.layer(name).log_base(value))
        for name, field in fields.items():
            total = total - self.layer(name).total(self.layer(name).log_partition(field))
        return total

    def _missing(self, present: State) -> tuple[str, ...]:
        return tuple(name for name in self.graph.layers if name not in present)

    def free_energy(self, x: Values | Mapping[str, Values]) -> Tensor:
        """Return `F(x) = -log Σ_h e^{-E(x, h)}` of data, checked for its support."""
        state = self.state(x)
        for name, value in state.items():
            self.layer(name).check_support(value, name)
        return self.energy(state)

    def distribution(self, layer: str, state: Values | Mapping[str, Values]) -> Tensor:
        """Return `p(x_j = s | state)` of each unit j of a layer in each of its states s, `(*batch, *sites, n_states)`.

        The other missing layers are summed out, as in `energy`: of a label of 10 classes it is `p(label | x)`.
        """
        present = self.state(state)
        present.pop(layer, None)
        units, missing = self.graph.layers[layer], self._missing(present)
        if not any((layer, other) in self.graph.tied for other in missing):
            return units.log_weights(self.field(layer, present)).softmax(-1)
        rest = tuple(name for name in missing if name != layer)
        summation = self.graph.summation(missing) if (layer, layer) not in self.graph.tied else None
        if summation is not None and summation.gate == layer:
            return gate_probabilities(self, summation, gate_fields(self, summation, present))
        self.graph.summation(rest)  # raises if the others cannot be summed out
        if (units.n_configurations() or math.inf) > MAX_ENUMERATED:
            raise ValueError(
                f"The distribution of layer {layer!r} would count its configurations, and {units!r} has more than "
                f"{MAX_ENUMERATED}. Give the layers that are tied to it in the state."
            )
        counted = configurations(self, (layer,), present)
        share = (-self.energy(present | counted)).softmax(0)
        return units.marginals(share, counted[layer])

    @without_gradient
    def sample(self, layer: str, state: State, *, generator: torch.Generator | None = None) -> Tensor:
        """Draw a layer given the layers tied to it."""
        return self.layer(layer).sample(self.field(layer, state), generator=generator)

    def mean(self, layer: str, state: State) -> Tensor:
        """Return the mean of a layer given the layers tied to it."""
        return self.layer(layer).mean(self.field(layer, state))

    def infer(self, x: Values | Mapping[str, Values]) -> State:
        """Return the state with the missing layers at their means given the others: exact, as `energy` is."""
        return self.fill(self.state(x)).state

    def fill(self, present: State) -> Filled:
        """Return a state with the missing layers at their exact means, and the fields on them; unchecked."""
        summation = self.graph.summation(missing := self._missing(present))
        if summation.counted:
            share, full = count(self, present, summation.counted)
            state = present | {name: expected(share, full[name]) for name in missing}
            return Filled(state, {name: self.field(name, state) for name in missing})
        fields = {name: self.field(name, present) for name in summation.closed}
        state = present | {name: self.graph.layers[name].mean(field) for name, field in fields.items()}
        if summation.gate is not None:
            state |= gate_means(self, summation, present)
            fields |= {name: self.field(name, state) for name in (summation.gate, *summation.gated)}
        return Filled(state, fields)

    @without_gradient
    def draw_missing(self, present: State, *, generator: torch.Generator | None = None) -> State:
        """Draw the missing layers given the others, exactly, as `energy` sums them out."""
        summation = self.graph.summation(self._missing(present))
        state = dict(present)
        if summation.counted:
            state |= draw_counted(self, summation.counted, present, generator=generator)
        if summation.gate is not None:
            state |= draw_gate(self, summation, gate_fields(self, summation, present), generator=generator)
        for name in summation.closed:
            state[name] = self.sample(name, state, generator=generator)
        return state

    def ties(self, first: str, second: str) -> bool:
        """Return whether a coupling ties two layers, or a layer to itself."""
        return (first, second) in self.graph.tied

    def lateral(self, layer: str) -> Tensor | None:
        """Return `W = ∂field/∂x` within a layer whose units meet in pairs alone, n × n, else None. A hook of tempering.

        One unit that changes then moves the fields of the others by a row of W.
        """
        tying = [(names, coupling) for names, coupling in self.graph.terms if names.count(layer) > 1]
        if not all(len(names) == 2 and isinstance(coupling, Symmetric) for names, coupling in tying):
            return None
        matrices = [coupling.matrix() for _, coupling in tying if isinstance(coupling, Symmetric)]
        return torch.stack(matrices).sum(0) if matrices else None

    def blocks(self) -> list[tuple[str, ...]]:
        """Return groups of layers that are drawn at once given the others: untied ones, or a gate and its groups."""
        return list(self.graph.blocks)

    def accumulate_grad(self, state: Values | Mapping[str, Values], weight: Tensor | float = 1.0) -> Filled:
        """Add `Σ_batch weight · ∂E/∂parameters` of a (partial) state to the gradients; return the state filled in.

        `∂E/∂W = -∂Φ/∂W` at the values of the present layers and the means of the missing ones, since Φ is multilinear:
        a closed form. Where layers are counted it is the mean over their configurations; where units learn beside them,
        autograd takes the gradient of the sum.
        """
        present = self.state(state)
        with torch.no_grad():
            filled = self.fill(present)
        self.add_marginal_gradient(filled.state, weight, present)
        return filled

    def add_marginal_gradient(self, full: State, weight: Tensor | float, present: State) -> None:
        """Add the gradient of the energy of `present`, unchecked; `full` has the missing layers at their means.

        A gate and its groups are not independent: their couplings are taken at each state of the gate, weighted by it.
        """
        summation = self.graph.summation(self._missing(present))
        of = self.layers if summation.counted else summation.gated
        if any(_learns(self.layer(name)) for name in of):
            with torch.enable_grad():
                (self.energy(present) * weight).sum().backward()
            return
        with torch.no_grad():
            if summation.counted:
                share, states = count(self, present, summation.counted)
                add_counted_gradient(self, summation.counted, states, share * weight)
                return
            moments = gate_moments(self, summation, present) if summation.gate is not None else []
            self.add_gradient(full, weight, present, moments)

    def add_gradient(
        self, full: State, weight: Tensor | float, present: State | None = None, moments: Sequence[State] = ()
    ) -> None:
        """Add the gradient at a full state as `accumulate_grad` does, unchecked: for the inner loop of learning.

        Layers that `present` leaves out stand at their means and count as summed out. `moments` are those of a gate.
        """
        held = full if present is None else present
        batch = self.batch_shape(full)
        full = {  # a condition may be one value for all samples
            name: value if len(value.shape) == len(batch) + len(shape) else value.expand(*batch, *shape)
            for name, value in full.items()
            for shape in (self.layer(name).shape,)
        }
        scale = self.coupling_weight(weight, held)
        statistics = {name: self.statistic(name, value) for name, value in full.items()}
        parts = [
            statistics | {name: self.statistic(name, value).expand_as(full[name]) for name, value in moment.items()}
            for moment in moments
        ]
        joint = set(moments[0]) if moments else set()
        for layers, coupling in self.graph.terms:
            if _learns(coupling):
                for part in parts if len(joint & set(layers)) > 1 else [statistics]:
                    coupling.accumulate_grad(-scale, *[part[name] for name in layers])
        for name, units in self.graph.layers.items():
            if _learns(units):
                work = weighted_sum(self.field(name, full) * statistics[name], weight, units.shape)
                for coupling, to, others in self.graph.acting[name]:
                    if len(joint & {name, *others}) > 1:  # the mean of a product, not the product of means
                        fields = [coupling.field(to, *[part[other] for other in others]) for part in parts]
                        more = torch.stack(fields).sum(0) - coupling.field(to, *[statistics[other] for other in others])
                        work = work + weighted_sum(more * statistics[name], scale, units.shape)
                units.accumulate_grad(weight, work, full[name], summed_out=name not in held)

    def coupling_weight(self, weight: Tensor | float, state: State) -> Tensor | float:
        """Return the weight of the couplings in the gradient of each sample. A hook of tempering."""
        return weight

    @without_gradient
    def initial(self, n: int, *, generator: torch.Generator | None = None) -> State:
        """Draw `n` states to start chains from: each layer under its own biases alone."""
        return {
            name: units.sample(self.bias_field(name).expand(n, *units.shape), generator=generator)
            for name, units in self.graph.layers.items()
        }

    def bias_field(self, layer: str) -> Tensor:
        """Return the field on a layer when all couplings but its biases are off."""
        some = next(self.parameters())
        field = torch.zeros(self.layer(layer).shape, dtype=some.dtype, device=some.device)
        for layers, coupling in self.graph.terms:
            if layers == (layer,):
                field = field + coupling.field(0)
        return field.detach()


def _learns(module: nn.Module) -> bool:
    # As any(p.requires_grad for p in module.parameters()), which costs more than a small product.
    for parameter in module._parameters.values():
        if parameter is not None and parameter.requires_grad:
            return True
    return bool(module._modules) and any(m is not None and _learns(m) for m in module._modules.values())
