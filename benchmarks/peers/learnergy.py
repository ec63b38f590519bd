"""learnergy's RBM."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.data import TensorDataset

from benchmarks.runner import Contender


def epoch(x: Tensor, n_hidden: int, batch_size: int) -> Contender:
    """Return one epoch of `fit`."""
    from learnergy.models.bernoulli import RBM

    data = TensorDataset(x, torch.zeros(len(x), dtype=torch.int64))

    def run() -> None:
        RBM(n_visible=x.shape[1], n_hidden=n_hidden, steps=1, learning_rate=0.01).fit(data, batch_size, epochs=1)

    note = (
        "`RBM.fit`: CD-1 by automatic differentiation, through a DataLoader that picks rows one by one; computes the "
        "reconstruction error and a pseudo-likelihood of every batch, where the others monitor once an epoch or not "
        "at all; the rows are float32 before the clock starts"
    )
    return Contender("learnergy", run, note)
