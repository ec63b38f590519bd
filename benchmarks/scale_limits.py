"""Memory with a file of 20 GB, the likelihood on MNIST by several workers, and products with fewer digits."""

from __future__ import annotations

import json
import os
import resource
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
from torch import distributed, multiprocessing

import harmonium as hm
from harmonium import workers
from harmonium.data import RowsFile, load
from harmonium.learning import Callback

SIZE = 20 * 2**30
LOOKS = (20, 160)
"""The updates after which the peak of memory is looked at."""


def peak() -> float:
    """Return the most memory that this process had, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


class _Peaks(Callback):
    """The peak after some updates; the last of them ends the training."""

    def __init__(self, *updates: int) -> None:
        self.updates = updates
        self.found: list[float] = []

    def on_update(self, training: hm.learning.Training) -> None:
        if training.update in self.updates:
            self.found.append(peak())
        training.stop = training.update >= self.updates[-1]


@contextmanager
def _joined(rank: int, world: int, meeting: str) -> Iterator[None]:
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world)}
    if world > 1:
        limit = timedelta(seconds=600)
        distributed.init_process_group("gloo", f"file://{meeting}", timeout=limit, rank=rank, world_size=world)
    yield
    if world > 1:
        workers.meet()
        distributed.destroy_process_group()


def _read(rank: int, world: int, folder: str) -> None:
    with _joined(rank, world, f"{folder}/meeting"):
        found = _read_rows(folder)
    Path(f"{folder}/{rank}.json").write_text(json.dumps(found))


def _read_rows(folder: str) -> list[float]:
    rbm, rows = hm.RBM(hm.Bernoulli(784), hm.Bernoulli(500)), RowsFile(f"{folder}/rows.npy")
    before, peaks = peak(), _Peaks(*LOOKS)
    optimizer = torch.optim.SGD(rbm.parameters(), 0.01)
    hm.fit(rbm, rows, hm.CD(), optimizer=optimizer, epochs=1, batch_size=512, callbacks=[peaks])
    return [before, *peaks.found]


def memory(world: int = 2) -> None:
    """Train two workers from a sparse file of 20 GB for a part of an epoch and print the peak of each process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        with path.open("wb") as file:
            shape = (SIZE // 784, 784)
            np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
            file.truncate(file.tell() + shape[0] * shape[1])
        multiprocessing.spawn(_read, (world, folder), world)
        for rank in range(world):
            before, early, late = json.loads((Path(folder) / f"{rank}.json").read_text())
            print(
                f"{shape[0]:,} rows, {path.stat().st_size / 1e9:.1f} GB, worker {rank} of {world}: peak {early:.2f} GB "
                f"after {LOOKS[0]} updates, {late:.2f} after {LOOKS[1]} ({before:.2f} before the first)"
            )


def _mnist(rank: int, world: int, folder: str, seed: int) -> None:
    with _joined(rank, world, f"{folder}/meeting-{world}-{seed}"):
        found = _learn_mnist(seed)
    if rank == 0:
        Path(f"{folder}/{world}-{seed}.json").write_text(json.dumps(found))


def _learn_mnist(seed: int) -> list[float]:
    """Return the test likelihood after an epoch, the error of log Z, and that over the rows."""
    data = load("mnist", binarize="threshold")
    rbm = hm.RBM(hm.Bernoulli(784), hm.Bernoulli(500), generator=torch.Generator().manual_seed(seed))
    x, test = data.train.flatten(1), data.test.flatten(1).float()
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(rbm.parameters(), 0.05)
    hm.fit(rbm, x, hm.CD(), optimizer=optimizer, epochs=1, batch_size=128, monitors=[], generator=generator)
    z = hm.ais(rbm, n_chains=256, n_betas=400, generator=torch.Generator().manual_seed(9))
    with torch.no_grad():
        nats = -workers.by_rows(rbm.free_energy, test).double()
    return [nats.mean().item() - z.value, z.error, nats.std().item() / len(nats) ** 0.5]


def likelihoods() -> None:
    """Print the test likelihood after an epoch of CD-1 on MNIST with 1 to 4 workers, and with two seeds."""
    with tempfile.TemporaryDirectory() as folder:
        for world, seed in ((1, 0), (2, 0), (3, 0), (4, 0), (1, 1), (2, 1), (4, 1)):
            multiprocessing.spawn(_mnist, (world, folder, seed), world)
            value, error, spread = json.loads(Path(f"{folder}/{world}-{seed}.json").read_text())
            print(
                f"CD-1 on MNIST, one epoch, {world} workers, seed {seed}: {value:.3f} nats ± {error:.3f} (log Z) "
                f"± {spread:.2f} (over the test rows)",
                flush=True,
            )


def rounded(x: torch.Tensor, n_bits: int) -> torch.Tensor:
    """Return numbers with so many bits behind the leading one: 10 in tf32, 7 in bf16.

    >>> rounded(torch.tensor([1.0 + 2**-9]), 7).item()
    1.0
    """
    mantissa, exponent = torch.frexp(x)
    return torch.ldexp((mantissa * 2 ** (n_bits + 1)).round() / 2 ** (n_bits + 1), exponent)


def precision() -> None:
    """Print what products of fewer digits cost the law of an RBM, exactly.

    States of binary units have no digits to lose, and sums are made in single precision: Gibbs sampling with products
    in tf32 or bf16 draws from the RBM whose weights are rounded so.
    """
    torch.set_num_threads(1)
    data = load("digits", binarize="threshold")
    x, test = data.train.flatten(1).float(), data.test.flatten(1).float()
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        rbm = hm.RBM(hm.Bernoulli(64), hm.Bernoulli(16), generator=generator)
        hm.fit(rbm, x, hm.PCD(n_chains=100), epochs=60, monitors=[], generator=generator)
        weight = rbm.weight.detach().clone()
        exact = hm.log_likelihood(rbm, test).value.double()
        line = f"digits, 64×16 units, seed {seed}: {exact.mean().item():.4f} nats"
        for name, n_bits in (("tf32", 10), ("bf16", 7)):
            with torch.no_grad():
                rbm.weight.copy_(rounded(weight, n_bits))
            gap = hm.log_likelihood(rbm, test).value.double() - exact
            line += f"; {name} {gap.mean().item():+.5f} ± {gap.std().item() / len(gap) ** 0.5:.5f}"
        print(line)
