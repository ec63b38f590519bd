"""Batches from every source, in an order that the generator decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset

import harmonium as hm
from harmonium.learning.batches import Batches, ends

ROWS = torch.arange(24.0).reshape(8, 3)
MACHINE = hm.RBM(hm.Gaussian(3), hm.Bernoulli(2))
JOINT = hm.JEM(hm.MLP(3, 2))


class Squares(Dataset[Tensor]):
    """A data set that is not in memory."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> Tensor:
        return torch.tensor([float(index), float(index) ** 2])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.int64, torch.float32, torch.float64])
def test_rows_of_tensors_and_arrays_keep_their_type(dtype: torch.dtype) -> None:
    x = (ROWS % 2).to(dtype)
    index = torch.tensor([3, 0])
    for source in (x, x.numpy()):
        batches = Batches(source, MACHINE)
        assert len(batches) == 8
        state = batches.rows(index)
        assert list(state) == ["visible"]
        assert state["visible"].dtype == dtype
        assert torch.equal(state["visible"], x[index])


def test_arrays_are_not_copied_unless_they_must() -> None:
    array = ROWS.numpy().copy()
    assert Batches(array, MACHINE).columns["visible"].data_ptr() == array.ctypes.data
    array.setflags(write=False)
    assert Batches(array, MACHINE).columns["visible"].data_ptr() == array.ctypes.data
    assert torch.equal(Batches(array, MACHINE).columns["visible"], ROWS)


def test_a_mapped_file_stays_on_the_disk(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS.numpy())
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    batches = Batches(mapped, MACHINE)
    assert batches.columns["visible"].data_ptr() == mapped.ctypes.data
    del mapped
    assert torch.equal(batches.rows(torch.tensor([6, 1]))["visible"], ROWS[[6, 1]])


def test_a_tuple_gives_data_and_labels() -> None:
    labels = np.arange(8)
    state = Batches((ROWS, labels), JOINT).rows(torch.tensor([5, 1]))
    assert list(state) == ["x", "y"]
    assert torch.equal(state["x"], ROWS[[5, 1]])
    assert state["y"].tolist() == [5, 1]
    assert torch.equal(Batches((ROWS,), JOINT).rows(torch.tensor([2]))["x"], ROWS[[2]])
    with pytest.raises(ValueError, match="must have as many rows. Got {'x': 8, 'y': 7}"):
        Batches((ROWS, labels[:7]), JOINT)
    assert torch.equal(Batches((ROWS,), MACHINE).rows(torch.tensor([2]))["visible"], ROWS[[2]])
    with pytest.raises(ValueError, match="The data have 2 parts, and this model takes 'visible' from a tuple"):
        Batches((ROWS, labels), MACHINE)


def test_a_mapping_names_layers() -> None:
    hidden = (ROWS[:, :2] % 2).numpy()
    batches = Batches({"hidden": hidden, "visible": ROWS}, MACHINE)
    assert len(batches) == 8
    state = batches.rows(torch.tensor([3, 0]))
    assert torch.equal(state["visible"], ROWS[[3, 0]])
    assert torch.equal(state["hidden"], torch.from_numpy(hidden)[[3, 0]])
    with pytest.raises(ValueError, match="layer 'label', which this model does not have.*'visible', 'hidden'"):
        Batches({"visible": ROWS, "label": ROWS}, MACHINE)
    with pytest.raises(ValueError, match="must have as many rows. Got {'visible': 8, 'hidden': 7}"):
        Batches({"visible": ROWS, "hidden": hidden[:7]}, MACHINE)
    with pytest.raises(ValueError, match="The data hold no layer"):
        Batches({}, MACHINE)


def test_data_sets() -> None:
    batches = Batches(Squares(), MACHINE)
    assert len(batches) == 5
    assert batches.columns == {}
    assert batches.rows(torch.tensor([4, 2]))["visible"].tolist() == [[4.0, 16.0], [2.0, 4.0]]
    assert torch.equal(Batches(TensorDataset(ROWS), MACHINE).rows(torch.tensor([1, 7]))["visible"], ROWS[[1, 7]])
    state = Batches(TensorDataset(ROWS, torch.arange(8)), JOINT).rows(torch.tensor([1, 7]))
    assert torch.equal(state["x"], ROWS[[1, 7]])
    assert state["y"].tolist() == [1, 7]


def test_loaders() -> None:
    batches = Batches(DataLoader(TensorDataset(ROWS), batch_size=3), MACHINE)
    assert len(batches) == 8
    assert torch.equal(torch.cat([state["visible"] for state in batches.loaded()]), ROWS)
    pairs = list(Batches(DataLoader(TensorDataset(ROWS, torch.arange(8)), batch_size=8), JOINT).loaded())
    assert [list(state) for state in pairs] == [["x", "y"]]
    with pytest.raises(TypeError, match="Only a DataLoader"):
        next(Batches(ROWS, MACHINE).loaded())


@pytest.mark.parametrize("source", ["rows", None])
def test_other_sources(source: Any) -> None:
    with pytest.raises(TypeError, match=f"Values must be a tensor.*Got {type(source).__name__}"):
        Batches(source, MACHINE)


def test_a_list_of_rows_is_an_array() -> None:
    assert torch.equal(Batches(ROWS.tolist(), MACHINE).rows(torch.arange(8))["visible"].float(), ROWS)


def trained(source: Any, seed: int = 0, **options: Any) -> Tensor:
    """Train on a source and return the weights."""
    rbm = hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2), generator=torch.Generator().manual_seed(1))
    optimizer = torch.optim.SGD(rbm.parameters(), 0.1)
    generator = torch.Generator().manual_seed(seed)
    hm.fit(rbm, source, hm.CD(), optimizer=optimizer, epochs=2, batch_size=3, generator=generator, monitors=[],
           **options)  # fmt: skip
    return rbm.weight.detach().clone()


def test_every_source_trains_alike() -> None:
    """The same rows in any form, with one generator: the same model; labels that have no layer are refused."""
    bits = (ROWS % 2).to(torch.uint8)
    expected = trained(bits.float())
    labels = torch.arange(8)
    sources: list[Any] = [bits, bits.bool(), bits.double(), bits.numpy(), (bits,), {"visible": bits}, bits.tolist(),
                          TensorDataset(bits)]  # fmt: skip
    for source in sources:
        assert torch.equal(trained(source), expected)
    loader = DataLoader(TensorDataset(bits), batch_size=3)
    assert trained(loader).shape == expected.shape
    assert torch.equal(trained(loader), trained(DataLoader(bits, batch_size=3)))
    labeled = TensorDataset(bits, labels)
    for refused in ((bits, labels), labeled, DataLoader(labeled, batch_size=3)):
        with pytest.raises(ValueError, match="Labels need a layer of their own"):
            trained(refused)


class Order(hm.learning.Callback):
    """Notes the rows in the order in which they come."""

    def __init__(self) -> None:
        self.rows: list[float] = []

    def on_update(self, training: Any) -> None:
        self.rows += training.batch["visible"][:, 0].tolist()


def order_of(seed: int) -> list[float]:
    rbm = hm.RBM(hm.Gaussian(3), hm.Bernoulli(2))
    order = Order()
    hm.fit(rbm, ROWS, hm.CD(), optimizer=torch.optim.SGD(rbm.parameters(), 0.0), epochs=2, batch_size=3,
           generator=torch.Generator().manual_seed(seed), monitors=[], callbacks=[order])  # fmt: skip
    return order.rows


def test_the_generator_shuffles() -> None:
    rows = order_of(0)
    for epoch in (rows[:8], rows[8:]):
        assert sorted(epoch) == ROWS[:, 0].tolist()
    assert rows[:8] != rows[8:]
    assert order_of(0) == rows
    assert order_of(1) != rows


@pytest.mark.parametrize("n", [1, 127, 128, 129, 1000])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64])
def test_ends_are_those_of_each_column(n: int, dtype: torch.dtype) -> None:
    x = torch.randint(0, 99, (n, 3, 2), generator=torch.Generator().manual_seed(n)).to(dtype)
    low, high = ends(x)
    assert torch.equal(low, x.amin(0))
    assert torch.equal(high, x.amax(0))


@pytest.mark.parametrize("batch_size", [7, 100, 5000])
def test_rows_come_in_turn(batch_size: int) -> None:
    x, y = torch.arange(12_000, dtype=torch.int32).view(4000, 3), torch.arange(4000)
    order = torch.randperm(4000, generator=torch.Generator().manual_seed(1))[:3999]
    expected = list(order.split(batch_size))
    alone = list(Batches(x, MACHINE).in_turn(order, batch_size))
    paired = list(Batches((x, y), JOINT).in_turn(order, batch_size))
    assert len(alone) == len(paired) == len(expected)
    for index, (i, rows), (j, pairs) in zip(expected, alone, paired, strict=True):
        assert torch.equal(i, index)
        assert torch.equal(j, index)
        assert torch.equal(rows["visible"], x[index])
        assert torch.equal(pairs["x"], x[index])
        assert torch.equal(pairs["y"], index)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.int64, torch.float64])
def test_rows_as_floats_have_the_same_values(dtype: torch.dtype) -> None:
    batches, index = Batches((ROWS % 2).to(dtype), MACHINE), torch.tensor([3, 0, 3])
    floats, plain = (batches.rows(index, as_floats=as_floats)["visible"] for as_floats in (True, False))
    assert torch.equal(floats.float(), plain.float())


def test_class_numbers_may_be_bytes(generator: torch.Generator) -> None:
    numbers = torch.randint(3, (40, 2), generator=generator)
    ends = []
    for x in (numbers, numbers.to(torch.uint8), torch.eye(3)[numbers]):
        rbm = hm.RBM(hm.Categorical(2, 3), hm.Bernoulli(4), generator=torch.Generator().manual_seed(0))
        hm.fit(rbm, x, epochs=2, monitors=[], generator=torch.Generator().manual_seed(0))
        ends.append(rbm.weight.detach().clone())
    assert torch.equal(ends[0], ends[1])
    assert torch.allclose(ends[0], ends[2], atol=1e-5)


@pytest.mark.parametrize("order", [[0, 8], [-1, 3]])
def test_an_order_of_other_data_is_refused(order: list[int]) -> None:
    with pytest.raises(IndexError, match="There are 8"):
        next(Batches(ROWS, MACHINE).in_turn(torch.tensor(order), 2))


def test_a_dataset_that_gives_several_rows_at_once_is_asked_once_a_batch() -> None:
    class AtOnce(Dataset[Tensor]):
        asked: list[int] = []

        def __len__(self) -> int:
            return 6

        def __getitem__(self, index: int) -> Tensor:
            raise AssertionError("rows are asked for together")

        def __getitems__(self, index: list[int]) -> list[Tensor]:
            self.asked.append(len(index))
            return list(torch.eye(6)[index])

    batches = Batches(AtOnce(), hm.RBM(hm.Bernoulli(6), hm.Bernoulli(2)))
    found = [rows["visible"] for _, rows in batches.in_turn(torch.tensor([3, 1, 0, 5]), 3)]
    assert torch.equal(torch.cat(found), torch.eye(6)[[3, 1, 0, 5]])
    assert AtOnce.asked == [3, 1]
