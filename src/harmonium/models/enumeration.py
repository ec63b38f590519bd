"""Which layers of a machine to go through one by one, so that the rest can be summed in closed form."""

from __future__ import annotations

from harmonium.models.machine import BoltzmannMachine


def counted_layers(model: BoltzmannMachine) -> tuple[tuple[str, ...], int | None]:
    """Return the layers to enumerate and their number of states, None if infinite, the cheapest way."""
    best: tuple[tuple[str, ...], int | None] = (tuple(model.layers), _count(model, tuple(model.layers)))
    for block in model.blocks():
        if any(model.ties(name, name) for name in block):
            continue
        rest = tuple(name for name in model.layers if name not in block)
        n = _count(model, rest)
        if n is not None and (best[1] is None or n < best[1]):
            best = (rest, n)
    return best


def _count(model: BoltzmannMachine, layers: tuple[str, ...]) -> int | None:
    total = 1
    for name in layers:
        n = model.layer(name).n_configurations()
        if n is None:
            return None
        total *= n
    return total
