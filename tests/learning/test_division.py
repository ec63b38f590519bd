"""Training on several workers: the same numbers as on one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.groups import run_group
from tests.learning import divided


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    """What one process leaves."""
    return divided.all_cases()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of two workers leaves."""
    return run_group(2, divided.all_cases, tmp_path_factory.mktemp("pair"))


def check_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Raise unless two trainings left the same, and a saved state has the same form."""
    assert found["tensors"].keys() == expected["tensors"].keys()
    for key, value in expected["tensors"].items():
        np.testing.assert_allclose(found["tensors"][key], value, rtol=0, atol=1e-9, err_msg=key)
    for record, other in zip(found["records"], expected["records"], strict=True):
        assert record == pytest.approx(other, abs=1e-9)


@pytest.mark.parametrize("name", divided.CASES)
def test_two_workers_learn_what_one_does(name: str, alone: dict[str, Any], pair: list[dict[str, Any]]) -> None:
    for worker in pair:
        check_same(worker[name], alone[name])


def test_four_workers_learn_the_same(alone: dict[str, Any], tmp_path: Path) -> None:
    names = ["CD, Bernoulli", "PCD, Gaussian", "joint"]  # eleven rows, nine chains: the parts differ
    for worker in run_group(4, divided.some_cases, tmp_path, names):
        for name in names:
            check_same(worker[name], alone[name])


def test_a_buffer_is_divided_and_its_checkpoint_is_whole(alone: dict[str, Any], tmp_path: Path) -> None:
    path = str(tmp_path / "state.pt")
    assert run_group(4, divided.held_after_an_epoch, tmp_path, path) == [7, 8, 7, 8]
    for world in (1, 2, 3, 4):
        (tmp_path / f"by-{world}").mkdir()
        for worker in run_group(world, divided.gone_on, tmp_path / f"by-{world}", path):
            check_same(worker, alone["joint"])


def test_a_rule_that_is_not_divided_would_show(alone: dict[str, Any]) -> None:
    """The control: other rows or other draws change far more than the tolerance."""
    with pytest.raises(AssertionError):
        check_same(alone["CD-3"], alone["CD, Bernoulli"])


def test_workers_that_do_not_fit_are_told_so(tmp_path: Path) -> None:
    for messages in run_group(2, divided.refusals, tmp_path):
        assert "Workers must agree on the batch size. Worker 0 has 10; worker 1 has 11." in messages["batch size"]
        assert "Workers must agree on the version. Worker 0 has 1.0, torch" in messages["version"]
        assert "Workers must agree on the random state" in messages["seed"]
        assert "2 workers cannot share 3 chains: each needs two at least." in messages["chains"]
        assert "A DataLoader has an order of its own" in messages["loader"]


def test_workers_of_one_host_agree_in_one_exchange(tmp_path: Path) -> None:
    if not Path("/dev/shm").is_dir():
        pytest.skip("this system has no /dev/shm: workers speak by gloo")
    first, second = run_group(2, divided.exchanges, tmp_path)
    assert first["alike"][0] == second["alike"][0] == ["all_gather"]
    assert first["apart"][0] == ["all_gather", "broadcast"]  # the parameters of the first, where they are not the same
    for name in ("alike", "apart"):
        np.testing.assert_array_equal(first[name][1], second[name][1])
