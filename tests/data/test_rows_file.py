"""Rows that are read when they are asked for are learned from like an array in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import harmonium as hm
from harmonium.data import BlockRows, RowsFile


def trained(data: object) -> torch.Tensor:
    rbm = hm.RBM(hm.Bernoulli(12), hm.Bernoulli(4), generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.SGD(rbm.parameters(), 0.1)
    options = {"epochs": 2, "batch_size": 8, "generator": torch.Generator().manual_seed(1)}
    hm.fit(rbm, data, hm.CD(), optimizer=optimizer, monitors=[], **options)
    return rbm.weight.detach()


class InMemory(BlockRows):
    """Rows of one block that are at hand."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = torch.from_numpy(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def blocks(self) -> torch.Tensor:
        return torch.tensor([len(self)])

    def __getitems__(self, index: list[int]) -> list[torch.Tensor]:
        return list(self.rows[index].unbind(0))


def test_a_file_is_learned_from_like_its_rows_in_memory(tmp_path: Path) -> None:
    rows = (np.arange(30 * 12).reshape(30, 12) * 7 % 3 == 0).astype(np.uint8)
    np.save(tmp_path / "rows.npy", rows)
    file = RowsFile(tmp_path / "rows.npy")
    assert len(file) == 30 and torch.equal(torch.stack(file.__getitems__([3, 29])), torch.from_numpy(rows[[3, 29]]))
    assert torch.equal(trained(file), trained(InMemory(rows)))
    assert not torch.equal(trained(file), trained(InMemory(1 - rows)))  # the control


def test_what_is_no_file_of_rows_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "flat.npy", np.zeros(3))
    np.save(tmp_path / "columns.npy", np.asfortranarray(np.zeros((3, 2))))
    np.save(tmp_path / "text.npy", np.array([["a", "b"]]))
    for name in ("flat", "columns", "text"):
        with pytest.raises(ValueError, match=f"{name}.npy must hold"):
            RowsFile(tmp_path / f"{name}.npy")
    np.save(tmp_path / "rows.npy", np.zeros((3, 2)))
    file = RowsFile(tmp_path / "rows.npy")
    with pytest.raises(IndexError, match="rows 0 to 2"):
        file[3]
    (tmp_path / "rows.npy").write_bytes((tmp_path / "rows.npy").read_bytes()[:-8])
    with pytest.raises(ValueError, match="cut short"):
        file[2]
