"""The road from a law that can be drawn exactly to the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.models.gate_fields import GateFields, draw_gate, gate_fields, gate_log_weights
from harmonium.models.tempered import Tempered
from harmonium.partition.proper import check_proper
from harmonium.samplers import Gibbs
from harmonium.types import State, as_state


@dataclass(frozen=True)
class PathPoint:
    """Where the chains are: the layers that are kept, and the fields on the layers that are summed out.

    Where these are a gate and its groups, `gates` holds their fields. `tempered` are the fields at the temperature that
    the point was weighed at last, from which the next step draws.
    """

    state: State
    fields: State
    linear: Tensor
    gates: GateFields | None = None
    tempered: dict[float, State] = field(default_factory=dict, compare=False)


class MachinePath:
    """The tempered laws `p_β(x) ∝ e^{-E_β(x)}` of a machine, one block of layers summed out.

    `reference` may hold several fields for a layer, `(n_groups, *shape)`: then the chains are as many groups of equal
    size, one after the other, and each starts under its own. Since the kept state decides the fields of the summed-out
    block, a point of the path holds them: one product gives the weight of a temperature and the draw at the next.
    """

    def __init__(self, model: BoltzmannMachine, reference: Tensor | Mapping[str, Tensor] | None = None) -> None:
        check_proper(model)
        self.model = model
        given = {} if reference is None else as_state(reference, model.data_layer)
        self.reference = {name: model.bias_field(name) for name in model.layers} | given
        groups = {len(r) for name, r in self.reference.items() if r.ndim > len(model.layer(name).shape)}
        if len(groups) > 1:
            raise ValueError(f"All layers need as many reference fields. Got {sorted(groups)} of them.")
        self.n_groups = groups.pop() if groups else 1
        self._starts: dict[int, Tempered] = {}
        self._laws: dict[tuple[float, int], Tempered] = {}
        blocks = [block for block in model.blocks() if not any(model.ties(name, name) for name in block)]
        others = [block for block in blocks if model.data_layer not in block]
        self.summed: tuple[str, ...] = (others or [()])[-1]
        self.kept = [block for block in model.blocks() if block != self.summed]
        self.gating = model.graph.summation(self.summed) if self.summed and self.summed == model.graph.joint else None
        self.tilts = self._tilts()

    def _tilts(self) -> State | None:
        """Return `b - r` of each kept layer where it is not 0; None where terms tie kept layers or have conditions."""
        kept, graph = self.kept_layers(), self.model.graph
        flat = all(self.reference[name].ndim == len(self.model.layer(name).shape) for name in kept)
        tied = any(len(names) > 1 and set(names) <= {*kept, *graph.given} for names, _ in graph.terms)
        if tied or not flat:
            return None
        biases = {name: self.model.bias_field(name).double() for name in kept}
        tilts = {name: bias - self.reference[name].to(bias) for name, bias in biases.items()}
        return {name: tilt for name, tilt in tilts.items() if bool(tilt.any())}

    def kept_layers(self) -> list[str]:
        """Return the layers that are kept."""
        return [name for block in self.kept for name in block]

    def log_z0(self) -> float:
        """Return log Z at β = 0, `Σ A(r)`."""
        return self.group_log_z0()[0].item()

    def group_log_z0(self) -> Tensor:
        """Return log Z at β = 0 of each group of chains, `(n_groups,)`."""
        total = torch.zeros(self.n_groups, dtype=torch.float64)
        for name, r in self.reference.items():
            units = self.model.layer(name)
            total = total + units.total(units.log_partition(r.double())).cpu()
        return total

    def start(self, n: int, *, generator: torch.Generator | None = None) -> PathPoint:
        """Draw `n` states at β = 0, exactly."""
        state, reference = {}, self._at(0.0, n).reference
        for block in self.kept:
            for name in block:
                field = reference[name].expand(n, *self.model.layer(name).shape)
                state[name] = self.model.layer(name).sample(field, generator=generator)
        return self.point(state)

    def point(self, state: State) -> PathPoint:
        """Return a point of the path at these values of the kept layers."""
        kept = {name: state[name] for name in self.kept_layers()}
        linear = self._linear(kept)
        if self.gating is not None:
            return PathPoint(kept, {}, linear, gate_fields(self.model, self.gating, kept))
        return PathPoint(kept, {name: self.model.field(name, kept) for name in self.summed}, linear)

    def _linear(self, kept: State) -> Tensor:
        """Return `Σ Φ(x) - r·s(x)` of the kept layers: `(b - r)·s(x)` where nothing else ties them."""
        if self.tilts is None:
            return self.model.interaction(kept) - self._at(0.0, _rows(kept)).reference_interaction(kept)
        total = self.model.zeros(self.model.batch_shape(kept), kept)
        for name, tilt in self.tilts.items():
            total = total + self.model.layer(name).inner(tilt, kept[name])
        return total

    def log_ratio(self, point: PathPoint, beta: float, new: float) -> Tensor:
        """Return `log f_new(x) - log f_β(x)` of each chain, with `f_β = e^{-E_β}`, in float64."""
        total = (new - beta) * point.linear.double()
        high, low = self._tempered(point, new), self._at(beta, len(total))
        for name, theta in point.fields.items():
            units = self.model.layer(name)
            ratio = units.log_partition(high[name]).sub_(units.log_partition(low.temper(name, theta)))
            total = total + units.total(ratio).double()
        if point.gates is not None and self.gating is not None:
            for at, sign in ((new, 1.0), (beta, -1.0)):
                weights = gate_log_weights(self.model, self.gating, self._tempered_gates(point.gates, at))
                total = total + sign * self.model.layer(self.summed[0]).total(weights.logsumexp(-1)).double()
        return total

    def _tempered_gates(self, fields: GateFields, beta: float) -> GateFields:
        law, gate = self._at(beta, len(fields.gate)), self.summed[0]
        groups = [{name: law.temper(name, theta) for name, theta in group.items()} for group in fields.groups]
        return GateFields(law.temper(gate, fields.gate), groups)

    def advance(self, point: PathPoint, beta: float, *, generator: torch.Generator | None = None) -> PathPoint:
        """Make a Gibbs step at β: the summed-out layers first, from the fields at hand."""
        tempered, gibbs = self._at(beta, _rows(point.state)), Gibbs()
        state = dict(point.state)
        if point.gates is not None and self.gating is not None:
            fields = self._tempered_gates(point.gates, beta)
            state |= draw_gate(self.model, self.gating, fields, generator=generator)
        else:
            known = self._tempered(point, beta)
            gibbs.draw_block(tempered, self.summed, state, fields=known, generator=generator)
        for block in self.kept:
            gibbs.draw_block(tempered, block, state, generator=generator)
        return self.point(state)

    def _tempered(self, point: PathPoint, beta: float) -> State:
        """Return the fields at β on the layers that are summed out, made once for the weight and for the draw."""
        if beta not in point.tempered:
            law = self._at(beta, len(point.linear))
            point.tempered.clear()
            point.tempered[beta] = {name: law.temper(name, theta) for name, theta in point.fields.items()}
        return point.tempered[beta]

    def _at(self, beta: float, n: int) -> Tempered:
        """Return the law at β of n chains."""
        n = n if self.n_groups > 1 else 1
        if (beta, n) not in self._laws:
            if n not in self._starts:
                self._starts[n] = Tempered(self.model, 0.0, self._expanded(n))
            self._laws[beta, n] = self._starts[n].at(beta)
        return self._laws[beta, n]

    def _expanded(self, n: int) -> State:
        """Return the reference field of each of n chains, where groups differ."""
        shared = {name: r.ndim == len(self.model.layer(name).shape) for name, r in self.reference.items()}
        each = n // self.n_groups
        return {name: r if shared[name] else r.repeat_interleave(each, 0) for name, r in self.reference.items()}


def _rows(state: State) -> int:
    return len(next(iter(state.values())))
