"""Rows in blocks on a disk: every row once an epoch, in an order that neither memory nor a checkpoint holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from harmonium.data import BlockRows, ParquetRows, RowsFile, RowsFolder, rows_file


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two arrays and a Parquet file of 23 rows in all, in blocks of at most 4; each row holds its number."""
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    monkeypatch.setattr(rows_file, "_BLOCK", 32)
    np.save(tmp_path / "a.npy", np.stack([np.arange(10), np.zeros(10)], 1).astype(np.float32))
    np.save(tmp_path / "c.npy", np.stack([np.arange(17, 23), np.zeros(6)], 1).astype(np.float32))
    table = arrow.table({"number": np.arange(10, 17), "empty": arrow.array([None] * 7, arrow.float32())})
    parquet.write_table(table, tmp_path / "b.parquet", row_group_size=3)
    return tmp_path


def numbers(rows: BlockRows, batch_size: int, position: int = 0) -> list[list[int]]:
    order = rows.draw_order(generator=seeded())
    return [index.tolist() for index in rows.in_order(order, batch_size, position)]


@pytest.mark.parametrize("batch_size", [1, 5, 8, 100])
def test_every_row_has_its_turn_once(folder: Path, batch_size: int) -> None:
    rows = RowsFolder(folder)
    rows.window = 3
    assert rows.blocks().tolist() == [4, 4, 2, 3, 3, 1, 4, 2]
    batches = numbers(rows, batch_size)
    rows_in_turn = [i for batch in batches for i in batch]
    assert sorted(rows_in_turn) == list(range(23)) and rows_in_turn != list(range(23))
    assert [len(batch) for batch in batches] == [min(batch_size, 23 - i) for i in range(0, 23, batch_size)]
    for passed in range(len(batches)):  # going on within an epoch
        assert numbers(rows, batch_size, min(passed * batch_size, 23)) == batches[passed:]
    first = torch.searchsorted(rows.blocks().cumsum(0), torch.tensor(rows_in_turn[:5]), right=True)
    assert len(first.unique()) <= 3  # the first rows are those of one window


def test_rows_are_read_from_the_file_that_has_them(folder: Path) -> None:
    rows = RowsFolder(folder)
    found = torch.stack(rows.__getitems__([22, 3, 10, 16, 9]))
    assert found[:, 0].tolist() == [22, 3, 10, 16, 9]
    assert found[:, 1].isnan().tolist() == [False, False, True, True, False]  # empty cells of the table
    with pytest.raises(IndexError, match="rows 0 to 22"):
        rows[23]


def test_shuffled_within_a_window_all_orders_are_alike(tmp_path: Path) -> None:
    """Each of 6 rows is first as often as any other; 5.5 standard errors of 600 draws are a false alarm in 10⁷."""
    np.save(tmp_path / "rows.npy", np.zeros((6, 1), np.uint8))
    rows, generator = RowsFile(tmp_path / "rows.npy"), seeded(1)
    first = [int(next(rows.in_order(rows.draw_order(generator=generator), 1))) for _ in range(600)]
    assert max(abs(first.count(i) - 100) for i in range(6)) < 5.5 * (600 * 5 / 36) ** 0.5


def test_what_is_no_folder_of_rows_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match="must hold files of rows"):
        RowsFolder(tmp_path / "none")
    np.save(folder / "d.npy", np.zeros((2, 3)))
    with pytest.raises(ValueError, match="must have one shape"):
        RowsFolder(folder)
    with pytest.raises(IndexError, match="names 3 blocks of rows. There are 3"):
        next(RowsFile(folder / "a.npy").in_order(torch.tensor([0, 1, 1, 2]), 2))


def test_a_column_of_text_is_refused(tmp_path: Path) -> None:
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    parquet.write_table(arrow.table({"name": ["a", "b"]}), tmp_path / "text.parquet")
    with pytest.raises(ValueError, match="must hold columns of numbers. Got 'name' of type string"):
        ParquetRows(tmp_path / "text.parquet")
