"""Train a model on data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from harmonium.learning.batches import Source
from harmonium.learning.history import History
from harmonium.learning.monitors.monitors import Monitor, default_monitors
from harmonium.learning.training import BatchTransform, Callback, Training
from harmonium.learning.transforms.transforms import Transform


def fit(
    model: nn.Module,
    data: Source,
    objective: Any,
    *,
    optimizer: Optimizer,
    epochs: int,
    batch_size: int = 128,
    callbacks: Sequence[Callback] = (),
    generator: torch.Generator | None = None,
    validation: Tensor | None = None,
    weights: Tensor | None = None,
    transform: BatchTransform | None = None,
    transforms: Sequence[Transform] = (),
    schedule: LRScheduler | None = None,
    monitors: Sequence[Monitor] | None = None,
) -> History:
    """Train a model by stochastic gradient descent on an objective and return its history.

    `data` is a tensor, a NumPy array, a `Dataset` or a `DataLoader`; rows are shuffled each epoch, integers and
    booleans become floats batch by batch, and NaN mark missing values of tensors and arrays, which are drawn from the
    model given the rest. `weights` has one value a row. `transform(batch, generator=…)` changes each batch (a fresh
    binarization), `transforms` change gradients and parameters (decay, centering, averaging). `schedule` is any
    learning-rate schedule of PyTorch, stepped once an epoch. A value that is not finite stops training at the last good
    state with `TrainingDiverged`.

    >>> rbm = RBM(Bernoulli(6), Bernoulli(3))
    >>> x = torch.eye(6).repeat(20, 1)
    >>> history = fit(rbm, x, CD(), optimizer=torch.optim.SGD(rbm.parameters(), 0.1), epochs=2, monitors=[])
    >>> len(history)
    2
    """
    training = Training(
        model,
        data,
        objective,
        optimizer=optimizer,
        epochs=epochs,
        batch_size=batch_size,
        validation=validation,
        weights=weights,
        transform=transform,
        transforms=transforms,
        schedule=schedule,
        monitors=default_monitors() if monitors is None else monitors,
        callbacks=callbacks,
        generator=generator,
    )
    return training.run()
