"""The statistics of the benchmark runner, with a clock that is told what to show: nothing here takes time."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import pytest

from benchmarks.products import batch_sizes
from benchmarks.runner import FLOOR, OURS, Bar, Case, Contender, Result, measure, ratio, run_case


class FakeClock:
    """A clock that stands still unless a contender moves it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calls: list[str] = []

    def __call__(self) -> float:
        return self.now

    def contender(self, name: str, durations: list[float]) -> Contender:
        left = iter(durations)

        def run() -> None:
            self.calls.append(name)
            self.now += next(left)

        return Contender(name, run)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_contenders_take_turns_in_every_repeat(clock: FakeClock) -> None:
    contenders = [clock.contender(name, [1.0] * 3) for name in (FLOOR, OURS, "peer")]
    measure(contenders, 3, clock=clock)
    assert clock.calls == [FLOOR, OURS, "peer"] * 3


def test_each_run_is_timed_alone(clock: FakeClock) -> None:
    samples = measure([clock.contender("a", [1.0, 2.0]), clock.contender("b", [10.0, 20.0])], 2, clock=clock)
    assert samples == {"a": [1.0, 2.0], "b": [10.0, 20.0]}


def test_preparation_comes_before_each_run_and_is_not_timed(clock: FakeClock) -> None:
    def prepare() -> None:
        clock.calls.append("prepare")
        clock.now += 1000.0

    one = clock.contender("a", [1.0, 2.0])
    samples = measure([Contender("a", one.run, prepare=prepare)], 2, clock=clock)
    assert samples == {"a": [1.0, 2.0]}
    assert clock.calls == ["prepare", "a", "prepare", "a"]


def test_a_measured_contender_returns_its_own_figure(clock: FakeClock) -> None:
    assert measure([Contender("memory", lambda: 42.0, measured=True)], 2, clock=clock) == {"memory": [42.0, 42.0]}


def test_names_must_differ(clock: FakeClock) -> None:
    with pytest.raises(ValueError, match="different names"):
        measure([clock.contender("a", [1.0]), clock.contender("a", [1.0])], 1, clock=clock)


def test_there_must_be_a_repeat(clock: FakeClock) -> None:
    with pytest.raises(ValueError, match="at least 1. Got 0"):
        measure([clock.contender("a", [])], 0, clock=clock)


def test_ratio_is_the_median_of_the_ratios_of_each_repeat() -> None:
    """A repeat in which everything is slow does not count; the ratio of the medians would be misled."""
    floor, ours = [1.0, 1.0, 50.0, 2.0, 60.0], [2.0, 2.0, 100.0, 4.0, 120.0]
    assert ratio(ours, floor) == 2.0
    drifting = [1.0, 2.0, 4.0], [4.0, 4.0, 4.0]
    assert ratio(drifting[1], drifting[0]) == 2.0
    lopsided = [1.0, 10.0, 3.0], [10.0, 20.0, 3.0]
    assert ratio(lopsided[1], lopsided[0]) == 2.0
    assert statistics.median(lopsided[1]) / statistics.median(lopsided[0]) != 2.0


def test_ratio_needs_as_many_repeats_of_both() -> None:
    with pytest.raises(ValueError, match="shorter"):
        ratio([1.0, 2.0], [1.0])


def result_of(samples: dict[str, list[float]], *bars: Bar, unit: str = "ms") -> Result:
    return Result(Case("case", "a case", lambda quick: [], bars, unit=unit), samples)


def test_result_medians_ratios_and_speed_ups() -> None:
    result = result_of({FLOOR: [0.1, 0.2, 0.3], OURS: [0.15, 0.3, 0.45], "peer": [0.3, 0.6, 0.9]})
    assert result.median(FLOOR) == pytest.approx(200.0)
    assert result.times_floor(OURS) == pytest.approx(1.5)
    assert result.times_floor("peer") == pytest.approx(3.0)
    assert result.speed_up("peer") == pytest.approx(2.0)
    assert result.peers == ["peer"]


def test_figures_other_than_times_keep_their_unit_and_have_no_ratios() -> None:
    result = result_of({OURS: [20.0, 22.0, 21.0], "whole": [300.0, 301.0, 302.0]}, Bar(25.0), unit="MiB")
    data = result.as_json()
    assert data["medians"] == {OURS: 21.0, "whole": 301.0}
    assert data["times_floor"] == {OURS: None, "whole": None}
    assert data["speed_up"] == {"whole": None}
    assert data["bars"] == [{"bar": "≤ 25 MiB", "limit": 25.0, "against": "", "figure": 21.0, "met": True}]


@pytest.mark.parametrize(
    ("bar", "figure", "met"),
    [
        (Bar(1.5, FLOOR), 1.5, True),
        (Bar(1.4, FLOOR), 1.5, False),
        (Bar(2.0, "peer"), 2.0, True),
        (Bar(2.1, "peer"), 2.0, False),
        (Bar(3.0), 3.0, True),
        (Bar(2.9), 3.0, False),
        (Bar(1.0, "absent"), None, None),
    ],
)
def test_bars(bar: Bar, figure: float | None, met: bool | None) -> None:
    samples = {FLOOR: [2.0, 2.0], OURS: [3.0, 3.0], "peer": [6.0, 6.0]}
    assert bar.figure(samples) == figure
    assert bar.met(samples) is met


def test_a_case_is_warmed_up_at_the_quick_size_and_its_repeats_are_capped(clock: FakeClock) -> None:
    built: list[bool] = []

    def build(quick: bool) -> list[Contender]:
        built.append(quick)
        return [clock.contender("warm" if quick else OURS, [1.0] * 9)]

    result = run_case(Case("case", "a case", build, max_repeats=2), 7, clock=clock)
    assert built == [True, False]
    assert clock.calls == ["warm", OURS, OURS]
    assert result.samples == {OURS: [1.0, 1.0]}


def test_notes_of_the_contenders_are_kept(clock: FakeClock) -> None:
    run: Callable[[], None] = lambda: None  # noqa: E731
    case = Case("case", "a case", lambda quick: [Contender(OURS, run, "as it is"), Contender("peer", run)])
    assert run_case(case, 1, quick=True, clock=clock).notes == {OURS: "as it is"}


def test_batches_of_an_epoch() -> None:
    sizes = batch_sizes(60_000, 128)
    assert (len(sizes), sum(sizes), sizes[-1]) == (469, 60_000, 96)
    assert batch_sizes(256, 128) == [128, 128]
