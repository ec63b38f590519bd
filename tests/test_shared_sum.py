"""Sums through shared memory are those of the group, and what workers tell each other in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import summed
from tests.groups import run_group


@pytest.mark.parametrize(("world", "few"), [(2, 4), (3, 4), (3, 2)])
def test_every_worker_gets_the_sum(world: int, few: int, tmp_path: Path) -> None:
    if not Path("/dev/shm").is_dir():
        pytest.skip("this system has no /dev/shm: workers speak by gloo")
    expected = 2 * [float(sum(i + rank for rank in range(world))) for i in range(5)]
    for worker in run_group(world, summed.sums, tmp_path, 5, few):
        assert worker["found"] == [expected] * 4
        assert worker["apart"]  # the memory of another host, or of another container
        assert worker["without"]  # no such folder: the group adds up


def test_texts_of_any_length_are_told_to_all(tmp_path: Path) -> None:
    for n in (3, 1000):  # within what travels at once, and beyond
        (tmp_path / str(n)).mkdir()
        for text, error in run_group(3, summed.told, tmp_path / str(n), n):
            assert text == "é" * n + "0"
            assert f"Worker 0 has {text}; worker 1 has {'é' * n}1 (2 of 3 differ)." in error
