"""Sparse rows: the numbers of the dense ones, over nonzeros alone, and without a copy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

import harmonium as hm
from harmonium.learning.objectives import sparse_pair
from harmonium.learning.objectives.dense_pair import DensePair
from harmonium.learning.sparse_rows import SparseRows
from harmonium.testing import tiny_rbm
from tests.learning.machines import draw_data
from tests.learning.test_dense_pair import OBJECTIVES, gradients_of_updates, same_machine

N_COLUMNS = 5000


def words(n: int = 60, dtype: str = "uint8") -> sp.csr_array:
    """Rows of which a hundredth are ones."""
    X = sp.random_array((n, N_COLUMNS), density=0.01, rng=0, format="csr")
    X.data[:] = 1.0
    return X.astype(dtype)


def refuse(*arguments: Any) -> None:
    raise AssertionError("a dense product")


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("hidden", ["Bernoulli", "Spin", "Binomial", "Categorical"])
@pytest.mark.parametrize("visible", ["Bernoulli", "Spin", "Binomial"])
def test_sparse_products_have_the_numbers_of_the_machine(
    visible: str, hidden: str, objective: str, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse_pair, "FEWEST_COLUMNS", 1)
    monkeypatch.setattr(sparse_pair, "DENSEST", 1.0)
    rbm = tiny_rbm(visible, hidden)
    x = draw_data(rbm, 6, generator)
    general = gradients_of_updates(same_machine(rbm), OBJECTIVES[objective](), x)
    monkeypatch.setattr(DensePair, "above", refuse)
    monkeypatch.setattr(DensePair, "add_contrast", refuse)
    made = OBJECTIVES[objective]()
    sparse = gradients_of_updates(rbm, made, x)
    assert len(sparse) == len(general)
    for ours, theirs in zip(sparse, general, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_many_columns_take_the_sparse_way_and_few_do_not(objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    rbm = hm.RBM(hm.Bernoulli(N_COLUMNS), hm.Bernoulli(3), generator=generator).double()
    x = torch.from_numpy(words(8).toarray()).double()
    with torch.no_grad():
        rbm.visible_bias.fill_(-5.0)  # so that draws are sparse, too
    general = gradients_of_updates(same_machine(rbm), OBJECTIVES[objective](), x)
    monkeypatch.setattr(DensePair, "add_contrast", refuse)
    sparse = gradients_of_updates(rbm, OBJECTIVES[objective](), x)
    for ours, theirs in zip(sparse, general, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    rbm.zero_grad()
    with pytest.raises(AssertionError, match="a dense product"):  # half of the values are ones
        hm.CD().accumulate_grad(rbm, (x + torch.arange(N_COLUMNS) % 2).clamp(max=1), generator=generator)


def learned(data: Any) -> hm.RBM:
    generator = torch.Generator().manual_seed(0)
    rbm = hm.RBM(hm.Bernoulli(N_COLUMNS), hm.Bernoulli(4), generator=generator).double()
    hm.fit(rbm, data, epochs=2, batch_size=20, monitors=[], generator=generator)
    return rbm


def as_csr_tensor(X: sp.csr_array) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls this layout a beta
        return torch.from_numpy(X.toarray()).to_sparse_csr()


SOURCES: dict[str, Callable[[sp.csr_array], Any]] = {
    "csr": lambda X: X,
    "matrix": sp.csr_matrix,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "coo tensor": lambda X: torch.from_numpy(X.toarray()).to_sparse(),
    "csr tensor": as_csr_tensor,
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_fit_learns_the_same_from_sparse_and_dense_rows(source: str, dtype: str) -> None:
    X = words(dtype=dtype)
    sparse, dense = learned(SOURCES[source](X)), learned(torch.from_numpy(X.toarray()))
    for ours, theirs in zip(sparse.parameters(), dense.parameters(), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    assert not torch.allclose(sparse.visible_bias, torch.zeros(()).double())  # it started at the data


def test_rows_are_held_once_in_their_own_dtype() -> None:
    X = words()
    rows = SparseRows(X)
    assert rows.values.data_ptr() == X.data.ctypes.data
    assert rows.columns.data_ptr() == X.indices.ctypes.data
    assert rows.values.dtype == torch.uint8
    assert torch.equal(rows[7], torch.from_numpy(X[[7]].toarray())[0].float())
    assert torch.equal(rows.sums(), torch.from_numpy(X.sum(0)).float())
    empty = SparseRows(sp.csr_array((3, 4)))
    assert torch.equal(empty.rows(torch.tensor([2, 0])), torch.zeros(2, 4))


def test_what_is_stored_twice_is_added() -> None:
    X = sp.csr_array(([1.0, 1.0, 1.0], [0, 0, 2], [0, 2, 3]), shape=(2, 3))
    assert torch.equal(SparseRows(X).rows(torch.arange(2)), torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))


def test_wrong_sparse_data_are_refused() -> None:
    rbm = hm.RBM(hm.Bernoulli(N_COLUMNS), hm.Bernoulli(2))
    holed = words(dtype="float32")
    holed.data[3] = float("nan")
    with pytest.raises(ValueError, match="must hold finite real numbers"):
        hm.fit(rbm, holed)
    with pytest.raises(ValueError, match="must be a matrix, one row a sample. Got shape \\(2, 2, 2\\)"):
        hm.fit(rbm, torch.ones(2, 2, 2).to_sparse())
    with pytest.raises(ValueError, match="must have shape"):
        hm.fit(rbm, words()[:, :10])
    twos = words(dtype="float32")
    twos.data[:] = 2.0
    with pytest.raises(ValueError, match="visible"):
        hm.fit(rbm, twos)
