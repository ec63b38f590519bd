"""Exact resume in the middle of an epoch, for data that come in an order of their own: blocks of a file, loaders."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

import harmonium as hm
from harmonium.data import RowsFile, rows_file
from harmonium.learning import Callback, Training
from harmonium.learning.monitors import default_monitors
from harmonium.learning.state import restore, snapshot
from harmonium.learning.state_check import check_state

ROWS = (np.arange(30 * 6).reshape(30, 6) * 7 % 5 < 2).astype(np.float32)


class StopAt(Callback):
    """Stop after some update."""

    def __init__(self, update: int) -> None:
        self.update = update

    def on_update(self, training: Training) -> None:
        training.stop = training.update == self.update


def loader(seed: int | None = 5, **options: Any) -> DataLoader[Any]:
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    return DataLoader(TensorDataset(torch.from_numpy(ROWS)), 7, generator=generator, **options)


def training(data: Any, stop: int = 0) -> Training:
    rbm = hm.RBM(hm.Bernoulli(6), hm.Bernoulli(4), generator=torch.Generator().manual_seed(0))
    return Training(
        rbm,
        data,
        hm.PCD(n_chains=5),
        optimizer=torch.optim.SGD(rbm.parameters(), 0.1, momentum=0.5),
        epochs=3,
        batch_size=7,
        monitors=default_monitors(),
        callbacks=[StopAt(stop)],
        generator=torch.Generator().manual_seed(1),
    )


def outcome(run: Training) -> tuple[dict[str, Tensor], list[Any]]:
    run.run()
    return {name: value.clone() for name, value in snapshot(run)[0].items()}, run.history.records


def check_resume(data: Callable[[], Any], cut: int) -> None:
    expected, records = outcome(training(data()))
    first = training(data(), stop=cut)
    first.run()
    tensors, plain = snapshot(first)
    second = training(data())
    check_state(second, tensors, plain)
    restore(second, {name: value.clone() for name, value in tensors.items()}, copy.deepcopy(plain))
    found, again = outcome(second)
    assert again == records and found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


@pytest.mark.parametrize("cut", [2, 5, 8, 10])
def test_blocks_of_a_file(cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_file, "_BLOCK", 100)
    monkeypatch.setattr(RowsFile, "window", 2)
    np.save(tmp_path / "rows.npy", ROWS)
    check_resume(lambda: RowsFile(tmp_path / "rows.npy"), cut)


@pytest.mark.parametrize("cut", [2, 5, 8, 10])
def test_a_loader_that_shuffles_by_a_generator_of_its_own(cut: int) -> None:
    check_resume(lambda: loader(shuffle=True), cut)


def test_a_loader_that_does_not_shuffle() -> None:
    check_resume(lambda: loader(seed=None), 7)


def test_a_loader_whose_order_nobody_knows_is_refused() -> None:
    first = training(loader(seed=None, shuffle=True), stop=2)
    first.run()
    second = training(loader(seed=None, shuffle=True))
    restore(second, *snapshot(first))
    with pytest.raises(ValueError, match="global random numbers cannot go on within an epoch"):
        second.run()
