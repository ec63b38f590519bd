"""Which layers meet: what follows from the names in the terms alone, worked out once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations, permutations

from harmonium.couplings import Bias, Coupling
from harmonium.models.summation import Summation
from harmonium.units import Units

Term = tuple[tuple[str, ...], Coupling]
"""A coupling and the layers that it ties, in order."""

MAX_ENUMERATED = 256
"""The most configurations of tied layers that an energy counts one by one."""


class Graph:
    """The layers of a machine, its terms, and the layers that are given.

    Blocks are groups of layers that are drawn at once given the others: no coupling ties them, or they are a gate and
    its groups (`joint`). A given layer is a condition: it is in no block.
    """

    def __init__(self, layers: Mapping[str, Units], terms: Sequence[Term], given: Iterable[str] = ()) -> None:
        self.all_layers = dict(layers)
        self.terms = [(tuple(names), coupling) for names, coupling in terms]
        self.given = tuple(given)
        for names, coupling in self.terms:
            for name in names:
                if name not in self.all_layers:
                    raise ValueError(f"A term names layer {name!r}. The layers are {list(layers)}. Use one of them.")
            coupling.check_layers(names, [self.all_layers[name] for name in names])
            if len(set(names)) < len(names) and not coupling.ties_itself:
                raise ValueError(
                    f"{coupling!r} ties layer {names[0]!r} to itself, and each unit to itself with it: no draw "
                    "of one unit given the others knows that. Use Symmetric, which leaves the diagonal out."
                )
        for name in self.given:
            if name not in self.all_layers:
                raise ValueError(f"`given` names layer {name!r}. The layers are {list(layers)}. Use some of them.")
        self.layers = {name: units for name, units in self.all_layers.items() if name not in self.given}
        if not self.layers:
            raise ValueError(f"All layers are given: {list(layers)}. A machine needs at least one with a law.")
        self.acting = {
            name: [
                (coupling, to, names[:to] + names[to + 1 :])
                for names, coupling in sorted(self.terms, key=lambda term: len(term[0]) > 1)  # biases first
                for to, end in enumerate(names)
                if end == name
            ]
            for name in self.all_layers
        }
        pairs = (pair for names, _ in self.terms for pair in permutations(names, 2))
        self.tied = frozenset(pair for pair in pairs if not set(pair) & set(self.given))
        self.multiplies_bytes = any(coupling.multiplies_bytes for _, coupling in self.terms)
        self.joint = self._gate_with_groups()
        self.blocks = _independent_blocks(tuple(self.layers), self.tied)
        if self.joint:
            rest = (tuple(name for name in block if name not in self.joint) for block in self.blocks)
            self.blocks = (*filter(None, rest), self.joint)
        self._summations: dict[tuple[str, ...], Summation] = {}

    def with_given(self, more: Iterable[str]) -> Graph:
        """Return the graph with more layers given."""
        return Graph(self.all_layers, self.terms, (*self.given, *(name for name in more if name not in self.given)))

    @cached_property
    def biases(self) -> dict[str, Bias]:
        """The bias of each layer that has one."""
        return {names[0]: coupling for names, coupling in self.terms if isinstance(coupling, Bias)}

    def summation(self, missing: tuple[str, ...]) -> Summation:
        """Return how these layers are summed out together, or raise if it cannot be done; the error names a layer."""
        found = self._summations.get(missing)
        if found is None:
            found = self._summations[missing] = self._find_summation(missing)
        return found

    def _find_summation(self, missing: tuple[str, ...]) -> Summation:
        if not self._ties_within(missing):
            return Summation(closed=missing)
        for gate in missing:
            gated = self._gated_by(gate, missing)
            if gated and not self._ties_within(tuple(name for name in missing if name != gate)):
                rest = tuple(name for name in missing if name != gate and name not in gated)
                return Summation(rest, gate=gate, gated=gated)
        counted = self._fewest(missing)
        if counted is None:
            first, second = self._ties_within(missing)[0]
            raise ValueError(
                f"The energy of this partial state is intractable: {self._tie(first, second)} ties the missing layers "
                f"{first!r} and {second!r}, which have too many configurations to count (the limit is "
                f"{MAX_ENUMERATED}). Give layer {second!r} in the state, or learn with an inference that fills it in: "
                "MeanField() or ClampedChains()."
            )
        return Summation(tuple(name for name in missing if name not in counted), counted)

    def _ties_within(self, names: tuple[str, ...]) -> list[tuple[str, str]]:
        return [(a, b) for i, a in enumerate(names) for b in names[i:] if (a, b) in self.tied]

    def _gated_by(self, gate: str, missing: tuple[str, ...]) -> tuple[str, ...]:
        """Return the missing layers tied to `gate` if each of its units meets its own group of them only."""
        if self.layers[gate].states() is None or (gate, gate) in self.tied:
            return ()
        found: set[str] = set()
        for names, coupling in self.terms:
            others = [name for name in names if name in missing and name != gate]
            if gate in names and others:
                if not all(coupling.gates(names.index(gate), names.index(other)) for other in others):
                    return ()
                found |= set(others)
        return tuple(name for name in missing if name in found)

    def _gate_with_groups(self) -> tuple[str, ...]:
        """Return a gate and its groups, () if there are none; the data layer is not among them."""
        others = tuple(self.layers)[1:]
        for gate in others:
            gated = self._gated_by(gate, tuple(name for name in others if name != gate))
            if gated and not self._ties_within(gated):
                return (gate, *gated)
        return ()

    def _fewest(self, missing: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the layers with the fewest configurations whose absence leaves no ties, if they are few enough."""
        best, fewest = None, MAX_ENUMERATED
        for size in range(1, len(missing) + 1):
            for names in combinations(missing, size):
                n = n_configurations(self.layers[name] for name in names)
                if n is not None and n <= fewest:
                    rest = tuple(name for name in missing if name not in names)
                    if not self._ties_within(rest) and (best is None or n < fewest):
                        best, fewest = names, n
        return best

    def _tie(self, first: str, second: str) -> str:
        """Return the kind of coupling that ties two layers."""
        tying = (
            c for names, c in self.terms if first in names and second in names and (first != second or len(names) > 1)
        )
        return type(next(tying)).__name__


def n_configurations(layers: Iterable[Units]) -> int | None:
    """Return how many states layers have together, None if infinitely many."""
    numbers = [units.n_configurations() for units in layers]
    return None if any(n is None for n in numbers) else math.prod(n for n in numbers if n is not None)


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
