"""Interleaved repeats, their medians and ratios, and the bars they are held against."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

FLOOR = "floor"
OURS = "harmonium"

Clock = Callable[[], float]
Samples = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Contender:
    """One way to do the work of a case; `note` says what is not like for like.

    `prepare` is called before each run and is not timed. A contender that is `measured` returns its own figure.
    """

    name: str
    run: Callable[[], Any]
    note: str = ""
    prepare: Callable[[], None] | None = None
    measured: bool = False


@dataclass(frozen=True)
class Bar:
    """What a case must reach: `against` the floor or another contender, or as a plain value (`against` empty)."""

    limit: float
    against: str = ""

    @property
    def is_speed_up(self) -> bool:
        """Against another package the figure is a speed-up, and must be at least the limit."""
        return self.against not in ("", FLOOR)

    def text(self, unit: str) -> str:
        """Return the bar in words."""
        if self.is_speed_up:
            return f"≥ {self.limit:g}× faster than {self.against}"
        return f"≤ {self.limit:g}× floor" if self.against == FLOOR else f"≤ {self.limit:g} {unit}"

    def figure(self, samples: Samples) -> float | None:
        """Return what is held against the limit, or None if a contender did not run."""
        if OURS not in samples or (self.against and self.against not in samples):
            return None
        if not self.against:
            return statistics.median(samples[OURS])
        pair = (self.against, OURS) if self.is_speed_up else (OURS, self.against)
        return ratio(samples[pair[0]], samples[pair[1]])

    def met(self, samples: Samples) -> bool | None:
        """Say whether the bar is reached; None if that is not known."""
        value = self.figure(samples)
        if value is None:
            return None
        return value >= self.limit if self.is_speed_up else value <= self.limit


@dataclass(frozen=True)
class Case:
    """A piece of work: `build(quick)` returns those who do it: the floor, ours, then the peers."""

    name: str
    title: str
    build: Callable[[bool], list[Contender]]
    bars: tuple[Bar, ...] = ()
    unit: str = "ms"
    note: str = ""
    max_repeats: int = 1000


@dataclass
class Result:
    """The samples of a case and what follows from them."""

    case: Case
    samples: dict[str, list[float]]
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def peers(self) -> list[str]:
        """The names of all but the floor and ours."""
        return [name for name in self.samples if name not in (FLOOR, OURS)]

    def median(self, name: str) -> float:
        """Return the median of a contender, in the unit of the case."""
        return statistics.median(self.samples[name]) * (1000 if self.case.unit == "ms" else 1)

    def times_floor(self, name: str) -> float | None:
        """Return the cost of a contender as a multiple of the floor."""
        return ratio(self.samples[name], self.samples[FLOOR]) if FLOOR in self.samples else None

    def speed_up(self, name: str) -> float | None:
        """Return how many times faster than a contender ours is; None unless times are compared."""
        timed = self.case.unit == "ms" and OURS in self.samples
        return ratio(self.samples[name], self.samples[OURS]) if timed else None

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        bars = [
            {
                "bar": bar.text(self.case.unit),
                "limit": bar.limit,
                "against": bar.against,
                "figure": bar.figure(self.samples),
                "met": bar.met(self.samples),
            }
            for bar in self.case.bars
        ]
        return {
            "case": self.case.name,
            "title": self.case.title,
            "unit": self.case.unit,
            "note": self.case.note,
            "repeats": max((len(values) for values in self.samples.values()), default=0),
            "samples": self.samples,
            "samples_unit": "s" if self.case.unit == "ms" else self.case.unit,
            "medians": {name: self.median(name) for name in self.samples},
            "times_floor": {name: self.times_floor(name) for name in self.samples},
            "speed_up": {name: self.speed_up(name) for name in self.peers},
            "bars": bars,
            "notes": self.notes,
        }


def ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """Return the median of the ratios of each repeat: what slows a whole repeat down cancels."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def measure(
    contenders: Sequence[Contender], repeats: int, *, clock: Clock = time.perf_counter
) -> dict[str, list[float]]:
    """Run all contenders one after another, `repeats` times, and return the figures of each."""
    if repeats < 1:
        raise ValueError(f"`repeats` must be at least 1. Got {repeats}.")
    samples: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    if len(samples) < len(contenders):
        raise ValueError(f"Contenders need different names. Got {[contender.name for contender in contenders]}.")
    for _ in range(repeats):
        for contender in contenders:
            if contender.prepare is not None:
                contender.prepare()
            gc.collect()
            started = clock()
            value = contender.run()
            elapsed = clock() - started
            samples[contender.name].append(value if contender.measured else elapsed)
    return samples


def run_case(case: Case, repeats: int, *, quick: bool = False, clock: Clock = time.perf_counter) -> Result:
    """Warm all contenders up on the quick version of the case, then measure."""
    if not quick:
        for contender in case.build(True):
            if not contender.measured:
                if contender.prepare is not None:
                    contender.prepare()
                contender.run()
    contenders = case.build(quick)
    samples = measure(contenders, min(repeats, case.max_repeats), clock=clock)
    return Result(case, samples, {contender.name: contender.note for contender in contenders if contender.note})
