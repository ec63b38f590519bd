"""How the cost grows: with batch, layers and chains for an update and a sweep, with betas × chains for AIS."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

import harmonium as hm
from benchmarks import rows
from benchmarks.cases.contrastive import bernoulli, fit_epoch
from benchmarks.cases.gibbs import trained
from benchmarks.runner import Contender, measure

REPEATS = 3
N_UPDATES = 20
N_SWEEPS = 20


@dataclass(frozen=True)
class Curve:
    """Seconds for each size; `r_squared` is of the line `a + b·size`, `doubling` the factor of the last doubling."""

    name: str
    label: str
    what: str
    sizes: list[int]
    seconds: list[float]
    r_squared: float
    doubling: float

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def straightness(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return R² of a straight line through the points."""
    return statistics.correlation(sizes, seconds) ** 2


def doubling(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return by how much the cost grows when the size doubles, from the last two points."""
    exponent = math.log(seconds[-1] / seconds[-2]) / math.log(sizes[-1] / sizes[-2])
    return 2.0**exponent


def _update(n_visible: int, n_hidden: int, batch_size: int) -> Contender:
    x = rows.binary_rows(batch_size * N_UPDATES, n_visible)
    return fit_epoch(functools.partial(bernoulli, n_visible, n_hidden), x, batch_size=batch_size)


def _sweep(model: hm.RBM, n_chains: int) -> Contender:
    return Contender("sample", lambda: hm.sample(model, n_chains, n_steps=N_SWEEPS, generator=rows.generator()))


def _ais(model: hm.RBM, n_chains: int, n_betas: int) -> Contender:
    betas = torch.linspace(0, 1, n_betas, dtype=torch.float64).tolist()
    return Contender("ais", lambda: hm.ais(model, n_chains=n_chains, betas=betas, generator=rows.generator()))


def curves(*, quick: bool) -> list[Curve]:
    """Measure all curves; the sizes of a curve are interleaved too."""
    n_visible, n_hidden, batch_size = (64, 32, 16) if quick else (784, 500, 128)
    model = trained(n_visible, n_hidden)
    n_sizes = 3 if quick else 6

    def sizes(last: int) -> list[int]:
        return [last >> i for i in reversed(range(n_sizes))]

    plans: list[tuple[str, str, str, list[int], Callable[[int], Contender], int]] = [
        (
            "batch",
            "batch size",
            "CD-1 update",
            sizes(batch_size * 8),
            lambda n: _update(n_visible, n_hidden, n),
            N_UPDATES,
        ),
        (
            "visible",
            "visible units",
            "CD-1 update",
            sizes(n_visible * 4),
            lambda n: _update(n, n_hidden, batch_size),
            N_UPDATES,
        ),
        (
            "hidden",
            "hidden units",
            "CD-1 update",
            sizes(n_hidden * 4),
            lambda n: _update(n_visible, n, batch_size),
            N_UPDATES,
        ),
        ("chains", "chains", "Gibbs sweep", sizes(batch_size * 16), lambda n: _sweep(model, n), N_SWEEPS),
        (
            "ais-betas",
            "temperatures, 128 chains",
            "AIS",
            sizes(64 if quick else 512),
            lambda n: _ais(model, batch_size, n),
            1,
        ),
        ("ais-chains", "chains, 40 temperatures", "AIS", sizes(batch_size * 8), lambda n: _ais(model, n, 40), 1),
    ]
    return [_curve(*plan) for plan in plans]


def _curve(name: str, label: str, what: str, sizes: list[int], make: Callable[[int], Contender], n_units: int) -> Curve:
    contenders = []
    for size in sizes:
        one = make(size)
        contenders.append(Contender(str(size), one.run, prepare=one.prepare))
    measure(contenders[:1], 1)
    samples = measure(contenders, REPEATS)
    seconds = [statistics.median(samples[str(size)]) / n_units for size in sizes]
    return Curve(name, label, what, sizes, seconds, straightness(sizes, seconds), doubling(sizes, seconds))
