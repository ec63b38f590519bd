"""A machine as units with finitely many states and pairs of them."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from harmonium.models import BoltzmannMachine
from harmonium.partition.proper import check_proper
from harmonium.types import State
from harmonium.units import Gaussian, Units

MAX_NODES = 2048
"""The most units that are looked at pair by pair."""


@dataclass(frozen=True)
class Pairwise:
    """The weight of a state, `constant + Σ_i node_i(x_i) + Σ_ij edge_ij(x_i, x_j)`; log Z is the log-sum of its exp.

    `node` is `(n, k)` with -∞ where a unit has fewer than k states; `ends` is `(n_edges, 2)` with `i < j`, `edge` is
    `(n_edges, k, k)`. All are in float64. Pairs whose table is zero are no edges.
    """

    constant: float
    node: Tensor
    ends: Tensor
    edge: Tensor

    @property
    def n(self) -> int:
        """The number of units."""
        return len(self.node)

    def degrees(self) -> Tensor:
        """Return the number of edges at each unit."""
        return torch.bincount(self.ends.flatten(), minlength=self.n)


@torch.no_grad()
def pairwise(model: BoltzmannMachine) -> Pairwise:
    """Return the units and pairs of a machine, whatever its couplings; Gaussian layers are summed out.

    The field on a layer is affine in each other layer, `b + Σ_m W_m s(x_m)`, so zeros and unit vectors in place of the
    others give b and W. A Gaussian layer adds `A(θ) = θ²/2σ² + ½ log 2πσ²`, which is again a sum over pairs. Raises
    `ValueError` where three layers meet, or where a layer has infinitely many states and is not Gaussian.

    >>> pairwise(RBM(Bernoulli(3), Bernoulli(2))).edge.shape
    torch.Size([6, 2, 2])
    """
    check_proper(model)
    machine = copy.deepcopy(model).double()
    finite = _finite_layers(machine)
    sizes = {name: int(torch.tensor(machine.layer(name).sites).prod()) for name in finite}
    if sum(sizes.values()) > MAX_NODES:
        raise ValueError(
            f"{sum(sizes.values()):,} units are too many to look at pair by pair; the limit is {MAX_NODES:,}."
        )
    probes = {name: _probes(machine.layer(name)) for name in finite}
    k = max(probe.shape[1] for probe in probes.values())
    zero = {name: torch.zeros(machine.layer(name).shape, dtype=torch.float64) for name in machine.layers}
    node = torch.cat([_padded(_own_weights(machine.layer(n), machine.field(n, zero)), k) for n in finite])
    table = torch.zeros(len(node), k, len(node), k, dtype=torch.float64)
    place = {name: slice(start, start + sizes[name]) for name, start in _starts(sizes).items()}
    for first in finite:
        for second in finite:
            if machine.ties(first, second):
                block = _product(_pushed(machine, probes[first], first, second, zero), probes[second])
                table[place[first], : block.shape[1], place[second], : block.shape[3]] += block
    constant = 0.0
    for name in (name for name in machine.layers if name not in finite):
        units = machine.layer(name)
        start = machine.field(name, zero).flatten()
        moved = torch.cat(
            [_padded_rows(_pushed(machine, probes[n], n, name, zero), k) if machine.ties(n, name)
             else torch.zeros(sizes[n], k, len(start), dtype=torch.float64) for n in finite]
        )  # fmt: skip
        precision = units.sigma.flatten().double() ** -2  # type: ignore[operator]
        constant += units.log_partition(start.reshape(units.shape)).sum().item()
        node = node + ((2 * start + moved) * moved * precision).sum(-1) / 2
        table += torch.einsum("isu,jtu->isjt", moved * precision, moved)
    first, second = torch.triu_indices(len(node), len(node), 1)
    pairs = table.permute(0, 2, 1, 3)[first, second]
    there = pairs.flatten(1).abs().amax(1) > 0
    return Pairwise(constant, node, torch.stack([first[there], second[there]], 1), pairs[there])


def _finite_layers(machine: BoltzmannMachine) -> list[str]:
    for names, coupling in machine.terms:
        if sum(name in machine.layers for name in names) > 2:
            raise ValueError(f"{coupling!r} ties three layers at once: the machine is no sum over pairs of units.")
    finite = [name for name in machine.layers if machine.layer(name).states() is not None]
    for name in (name for name in machine.layers if name not in finite):
        if not isinstance(machine.layer(name), Gaussian):
            raise ValueError(f"Layer {name!r} is {machine.layer(name)!r}: neither finite nor Gaussian.")
        if any(machine.ties(name, other) for other in machine.layers if other not in finite):
            raise ValueError(f"Layer {name!r} is tied to a layer that is not finite.")
    if not finite:
        raise ValueError(f"No layer of {list(machine.layers)} is finite.")
    return finite


def _probes(units: Units) -> Tensor:
    """Return the layer with one unit in one state and zeros elsewhere, `(n_sites, n_states, n_entries)`."""
    states = units.states()
    if states is None:
        raise ValueError(f"{units!r} has infinitely many states.")
    n_sites = int(torch.tensor(units.sites).prod())
    apart = torch.zeros(n_sites, len(states), n_sites, *states.shape[1:], dtype=torch.float64)
    apart[torch.arange(n_sites), :, torch.arange(n_sites)] = states.double()
    layer = units.join_sites(apart.unflatten(2, units.sites))
    return units.statistic(layer).flatten(2)


def _own_weights(units: Units, field: Tensor) -> Tensor:
    weights = units.log_weights(field)
    return weights.reshape(-1, weights.shape[-1])


def _pushed(machine: BoltzmannMachine, probe: Tensor, source: str, target: str, zero: State) -> Tensor:
    """Return the field that each state of each unit of `source` adds on `target`, `(n_sites, n_states, n_entries)`."""
    shape = machine.layer(source).shape
    basis = torch.eye(probe.shape[-1], dtype=torch.float64).unflatten(1, shape)
    moved = machine.field(target, zero | {source: basis}) - machine.field(target, zero)
    # A basis vector is a value; what the couplings see of it is its statistic, linear in it.
    seen = machine.layer(source).statistic(basis).flatten(1).diagonal()
    return torch.einsum("ise,ef->isf", probe / seen, moved.flatten(1))


def _product(pushed: Tensor, probe: Tensor) -> Tensor:
    return torch.einsum("isf,jtf->isjt", pushed, probe)


def _starts(sizes: dict[str, int]) -> dict[str, int]:
    starts, total = {}, 0
    for name, size in sizes.items():
        starts[name] = total
        total += size
    return starts


def _padded(weights: Tensor, k: int) -> Tensor:
    return torch.nn.functional.pad(weights, (0, k - weights.shape[-1]), value=-torch.inf)


def _padded_rows(moved: Tensor, k: int) -> Tensor:
    return torch.nn.functional.pad(moved, (0, 0, 0, k - moved.shape[1]))
