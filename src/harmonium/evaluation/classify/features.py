"""Features of the layers of RBMs and deep belief networks, pooled on a grid, for classifiers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from harmonium.models import DBN, RBM
from harmonium.types import without_gradient
from harmonium.units import Units

READINGS = ("mean", "mode", "sample")
"""How a hidden layer is read: its means, its most probable states, or states drawn."""


@without_gradient
def extract_features(
    model: RBM | DBN,
    x: Tensor,
    *,
    levels: Sequence[int] | None = None,
    grid: int | None = None,
    reading: str = "mean",
    batch_size: int = 256,
    prepare: Callable[[Tensor], Tensor] | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Return one float32 row of features a sample: `levels` (1 is the lowest hidden layer; the top unless told).

    Bounded units are divided by their range, so that N-level units lie in 0..1 whatever N. Layers of images are
    averaged over a `grid` x `grid` of equal cells (section 3.3 of Coates, Lee and Ng 2011), or kept as they are. A
    network goes up by means; `reading` says how the features themselves are read: means, most probable states, states
    drawn. For the last two, units with levels 0..N are at whole levels. Batches are prepared (`prepare`) and read one
    by one, and only the pooled features stay: 60,000 images need no more memory than their features.

    >>> rbm = RBM(Bernoulli(1, 8, 8), Bernoulli(5, 5, 5), Conv2d(1, 5, kernel=4))
    >>> extract_features(rbm, torch.zeros(3, 1, 8, 8), grid=2).shape
    torch.Size([3, 20])
    """
    dbn = model if isinstance(model, DBN) else DBN([model])
    wanted = (len(dbn),) if levels is None else tuple(levels)
    if reading not in READINGS:
        raise ValueError(f"`reading` must be one of {', '.join(READINGS)}. Got {reading!r}.")
    if not wanted or not all(1 <= level <= len(dbn) for level in wanted):
        raise ValueError(f"`levels` must be hidden layers, 1 to {len(dbn)}. Got {wanted}.")
    if grid is not None and grid < 1:
        raise ValueError(f"`grid` must be at least 1 cell a side, or None. Got {grid}.")
    rows: Tensor | None = None
    start = 0
    for part in x.split(batch_size):
        batch = _read(dbn, part if prepare is None else prepare(part), wanted, grid, reading, generator)
        if rows is None:
            rows = torch.empty(len(x), batch.shape[1], dtype=torch.float32)
        rows[start : start + len(batch)] = batch
        start += len(batch)
    if rows is None:
        raise ValueError("`x` has no samples. Give at least one.")
    return rows


def _read(
    dbn: DBN, x: Tensor, wanted: tuple[int, ...], grid: int | None, reading: str, generator: torch.Generator | None
) -> Tensor:
    found: dict[int, Tensor] = {}
    z = x.to(dbn[0].weight)
    for i in range(max(wanted)):
        hidden = dbn[i].hidden
        field = dbn[i].field("hidden", {"visible": dbn.enter(i, z)})
        if i + 1 in wanted:
            found[i + 1] = _scaled(hidden, _pooled(_values(hidden, field, reading, generator), grid))
        if i + 1 < max(wanted):
            z = dbn.pass_up(i, hidden.mean(field))
    return torch.cat([found[level] for level in wanted], dim=1)


def _values(units: Units, field: Tensor, reading: str, generator: torch.Generator | None) -> Tensor:
    if reading == "mean":
        return units.mean(field)
    # Normal noise is drawn seven times as fast where memory has the order of the axes.
    values = units.mode(field) if reading == "mode" else units.sample(field.contiguous(), generator=generator)
    # The smooth N-level unit draws between its levels: a state is a whole level.
    return values.round_() if all(abs(end) < float("inf") for end in units.bounds()) else values


def _scaled(units: Units, h: Tensor) -> Tensor:
    low, high = units.bounds()
    bounded = abs(low) < float("inf") and abs(high) < float("inf")
    return (h - low) / (high - low) if bounded and (low, high) != (0.0, 1.0) else h


def _pooled(h: Tensor, grid: int | None) -> Tensor:
    return (h if grid is None or h.ndim != 4 else adaptive_avg_pool2d(h, grid)).flatten(1)
