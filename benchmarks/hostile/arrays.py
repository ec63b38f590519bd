"""Hostile arrays and models for the Python interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch

import harmonium as hm
from benchmarks.hostile.attack import Attack

NAN, INF = float("nan"), float("inf")


def wrong_rows() -> dict[str, object]:
    """Return what no machine of 6 binary units can learn from."""
    bits = (torch.arange(60).reshape(10, 6) % 2).float()
    return {
        "infinite": bits / 0,
        "all missing": torch.full((10, 6), NAN),
        "beyond the support": bits + 7,
        "negative": -bits,
        "fractions of huge size": bits * 1e38,
        "complex": bits.to(torch.complex64),
        "no rows": bits[:0],
        "no columns": bits[:, :0],
        "five columns": bits[:, :5],
        "a number": torch.tensor(3.0),
        "a row": bits[0],
        "text": np.array([["a"] * 6] * 10),
        "objects": np.array([[None] * 6] * 10, dtype=object),
        "dates": np.zeros((10, 6), dtype="datetime64[s]"),
        "words": "abcdef",
        "nothing": None,
        "a set": {1, 2, 3},
        "ragged": [[1, 0], [1]],
        "another layer": {"visibel": bits},
        "layers of other lengths": {"visible": bits, "hidden": torch.zeros(3, 4)},
        "an empty mapping": {},
        "uint16 tensor": (bits * 60000).to(torch.uint16),
        "uint64 beyond": np.full((10, 6), 2**64 - 1, np.uint64),
        "uint16 beyond": np.full((10, 6), 2**16 - 1, np.uint16),
        "sparse with NaN": (bits * NAN).to_sparse(),
        "sparse, not a matrix": bits[None].to_sparse(),
        "sparse, other columns": bits[:, :5].to_sparse(),
        "meta": torch.empty(10, 6, device="meta"),
    }


def accepted_rows() -> dict[str, object]:
    """Return odd arrays that are right: the control of the others."""
    bits = np.arange(60).reshape(10, 6) % 2
    kinds = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "?", ">f4", ">i2")
    return {kind: bits.astype(kind) for kind in kinds} | {
        "a list": bits.tolist(),
        "strided": np.asfortranarray(bits.astype("f4")),
        "sparse": torch.from_numpy(bits).to_sparse(),
        "every second": np.repeat(bits, 2, 0)[::2].astype("f4"),
        "read only": np.broadcast_to(bits[:1].astype("f4"), (10, 6)),
        "some missing": np.where(bits * np.arange(10)[:, None] == 3, NAN, bits).astype("f4"),
    }


def fit(rows: object) -> None:
    """Learn from rows for a moment."""
    machine = hm.RBM(hm.Bernoulli(6), hm.Bernoulli(2), generator=torch.Generator().manual_seed(0))
    hm.fit(machine, rows, hm.CD(), epochs=1, batch_size=5, generator=torch.Generator().manual_seed(0))


def one_hot(value: float) -> None:
    """Learn from rows of a categorical layer that are no one-hot vectors."""
    rows = torch.eye(3)[torch.arange(9) % 3][:, None]
    rows[4] = value
    machine = hm.RBM(hm.Categorical(1, 3), hm.Bernoulli(2), generator=torch.Generator().manual_seed(0))
    hm.fit(machine, rows, hm.CD(), epochs=1, generator=torch.Generator().manual_seed(0))


def wrong_calls() -> dict[str, Callable[[], object]]:
    """Return calls that must raise with words."""
    rbm = hm.RBM(hm.Bernoulli(6), hm.Bernoulli(2))
    many = {
        f"{units.__name__}({', '.join(map(repr, shape))})": partial(units, *shape)
        for units in (hm.Bernoulli, hm.Gaussian, hm.Spin)
        for shape in ((0,), (-1,), (), (2.5,), ("a",), (None,), (NAN,))
    }
    return many | {
        "one-hot rows of zeros": partial(one_hot, 0.0),
        "one-hot rows of ones": partial(one_hot, 1.0),
        "one-hot rows of twos": partial(one_hot, 2.0),
        "a trillion hidden units": lambda: hm.RBM(hm.Bernoulli(784), hm.Bernoulli(10**12)),
        "a billion hidden units": lambda: hm.RBM(hm.Bernoulli(784), hm.Bernoulli(10**9)),
        "units that are numbers": lambda: hm.RBM(6, 2),
        "a rate of NaN": lambda: hm.fit(rbm, torch.ones(4, 6), learning_rate=NAN),
        "no epochs": lambda: hm.fit(rbm, torch.ones(4, 6), epochs=-1),
        "batches of nothing": lambda: hm.fit(rbm, torch.ones(4, 6), batch_size=0),
        "minus one sample": lambda: hm.sample(rbm, -1),
        "samples by words": lambda: hm.sample(rbm, "many"),
        "minus one step": lambda: hm.sample(rbm, 2, n_steps=-1),
        "log Z by magic": lambda: hm.log_z(rbm, method="magic"),
        "doubles for floats": lambda: rbm.free_energy(torch.ones(2, 6, dtype=torch.float64)),
        "another shape": lambda: rbm.free_energy(torch.ones(2, 5)),
        "levels of minus one": lambda: hm.Multinary(3, levels=-1),
        "a sigma of zero": lambda: hm.Gaussian(3, initial_sigma=0.0),
        "a sigma of NaN": lambda: hm.Gaussian(3, initial_sigma=NAN),
        "load what is not there": lambda: hm.load("nowhere.safetensors"),
    }


def wrong_arrays() -> Iterator[Attack]:
    """Yield arrays and calls of the Python interface, with the right ones beside them."""
    for name, rows in wrong_rows().items():
        yield Attack("arrays", name, call=partial(fit, rows), refuse=True)
    for name, rows in accepted_rows().items():
        yield Attack("arrays that are right", name, call=partial(fit, rows))
    for name, call in wrong_calls().items():
        yield Attack("calls", name, call=call, refuse=True)
